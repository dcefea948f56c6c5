import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readSecretText, secretFault, secretWarnings } from "../../src/config/secret.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const good = "7d1f0c5e9a3b48d2860e4f7a1b9c3d5e";

const bad = [
  ...["", " ", "   ", "\t", "\n", "\r\n", " \t\r\n ", "\u00a0", "\ufeff", "\u2003"],
  ...["change-me", "CHANGE-ME", "Change-Me", " change-me ", "change-me\n", "changeme", "ChangeMe"],
  ...[
    "<WEBHOOK_SECRET>",
    "<webhook_secret>",
    "<openssl rand -hex 32>",
    " <your secret>\n",
    "<>",
    "undefined",
    "null",
    "NULL",
    '""',
    "''",
  ],
];

for (const text of bad) {
  test(`the secret ${JSON.stringify(text)} is refused with the command for a good one`, () => {
    assert.match(secretFault("WEBHOOK_SECRET", text) ?? "", /^WEBHOOK_SECRET is .+openssl rand -hex 32/);
  });
}

for (const token of [
  "whsec_",
  "whsec_…",
  "whsec_...",
  "whsec_x",
  `whsec_${"*".repeat(28)}`,
  "whsec_MfKQ9r8GKYqrTwjUPD8ILP****",
  "whsec_c2hvcnQ=",
]) {
  test(`the signing token ${token} without a real key is refused`, () => {
    assert.match(
      secretFault("WEBHOOK_SECRET", token) ?? "",
      /not a whole signing token: .* at least 16 bytes/,
    );
    assert.match(secretFault("WEBHOOK_SECRET_PREVIOUS", token) ?? "", /^WEBHOOK_SECRET_PREVIOUS begins/);
  });
}

test("a whole signing token is accepted", () => {
  assert.equal(secretFault("WEBHOOK_SECRET", `whsec_${Buffer.alloc(32, 7).toString("base64")}`), null);
});

test("a secret with angle brackets inside is not a placeholder", () => {
  for (const text of [`<${good}`, `${good}>`, `a<${good}>`, `<a>${good}<b>`])
    assert.equal(secretFault("WEBHOOK_SECRET", text), null, text);
});

test("a previous secret may be missing, but is checked as strictly", () => {
  assert.equal(secretFault("WEBHOOK_SECRET_PREVIOUS", ""), null);
  assert.match(secretFault("WEBHOOK_SECRET_PREVIOUS", " ") ?? "", /^WEBHOOK_SECRET_PREVIOUS is empty/);
  assert.match(secretFault("WEBHOOK_SECRET_PREVIOUS", "changeme") ?? "", /placeholder/);
});

test("a warning names the length of a secret under 16 bytes", () => {
  assert.match(secretWarnings("a".repeat(15))[0] ?? "", /15 bytes.+openssl rand -hex 32/);
  assert.deepEqual(secretWarnings("a".repeat(16)), []);
  assert.deepEqual(secretWarnings("ä".repeat(8)), [], "bytes count, not characters");
});

const endings: readonly [string, string][] = [
  ["", good],
  ["\n", good],
  ["\r\n", good],
  ["\n\n", `${good}\n`],
  ["\r\n\r\n", `${good}\r\n`],
  ["\r", `${good}\r`],
  [" \n", `${good} `],
  ["\n ", `${good}\n `],
  ["\t", `${good}\t`],
  ["\0", `${good}\0`],
];

for (const name of ["WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS"] as const) {
  for (const [ending, expected] of endings) {
    test(`one line end in ${JSON.stringify(ending)} at the end of ${name}_FILE is removed`, (t) => {
      const path = join(temporaryDirectory(t), "secret");
      writeFileSync(path, good + ending);
      assert.deepEqual(readSecretText({ [`${name}_FILE`]: path }, name), { text: expected, fault: null });
    });
  }

  test(`a ${name}_FILE that is missing or a directory is named with the reason`, (t) => {
    const directory = temporaryDirectory(t);
    for (const [path, reason] of [
      [join(directory, "none"), "ENOENT"],
      [directory, "EISDIR"],
    ]) {
      const { text, fault } = readSecretText({ [`${name}_FILE`]: path }, name);
      assert.equal(text, "");
      assert.equal(fault, `${name}_FILE names ${path}, which cannot be read (${reason}).`);
    }
  });

  test(`${name} and ${name}_FILE together are refused`, (t) => {
    const path = join(temporaryDirectory(t), "secret");
    writeFileSync(path, good);
    const { fault } = readSecretText({ [name]: good, [`${name}_FILE`]: path }, name);
    assert.match(fault ?? "", /both set/);
  });
}

test("an empty variable beside a file counts as not set", (t) => {
  const path = join(temporaryDirectory(t), "secret");
  writeFileSync(path, good);
  assert.equal(
    readSecretText({ WEBHOOK_SECRET: "", WEBHOOK_SECRET_FILE: path }, "WEBHOOK_SECRET").text,
    good,
  );
});
