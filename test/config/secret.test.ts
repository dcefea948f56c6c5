import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readSecretText, secretFault, secretWarnings } from "../../src/config/secret.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const good = "7d1f0c5e9a3b48d2860e4f7a1b9c3d5e";
const names = ["WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS"] as const;

test("an empty or placeholder secret is refused with the command for a good one", () => {
  const blanks = ["", "   ", " \t\r\n ", "\u00a0", "\ufeff"];
  const placeholders =
    "change-me| Change-Me \n|changeme|<WEBHOOK_SECRET>| <your secret>\n|<>|undefined|NULL|\"\"|''";
  for (const text of [...blanks, ...placeholders.split("|")])
    assert.match(secretFault("WEBHOOK_SECRET", text) ?? "", /openssl rand -hex 32/, JSON.stringify(text));
});

test("a signing token without a real key is refused", () => {
  for (const token of ["", "…", "x", "*".repeat(28), "MfKQ9r8GKYqrTwjUPD8ILP****", "c2hvcnQ="])
    for (const name of names) assert.notEqual(secretFault(name, `whsec_${token}`), null, token);
});

test("a whole signing token, and angle brackets inside of a secret, are accepted", () => {
  const token = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
  for (const text of [token, `<${good}`, `${good}>`, `a<${good}>`, `<a>${good}<b>`])
    assert.equal(secretFault("WEBHOOK_SECRET", text), null, text);
});

test("a previous secret may be missing, but is checked as strictly", () => {
  assert.equal(secretFault("WEBHOOK_SECRET_PREVIOUS", ""), null);
  for (const text of [" ", "changeme"])
    assert.match(secretFault("WEBHOOK_SECRET_PREVIOUS", text) ?? "", /^WEBHOOK_SECRET_PREVIOUS is/);
});

test("a warning names the length of a secret under 16 bytes", () => {
  assert.match(secretWarnings("a".repeat(15))[0] ?? "", /15 bytes/);
  assert.deepEqual(secretWarnings("ä".repeat(8)), [], "bytes count, not characters");
});

test("one line end at the end of a file is removed, and nothing else", (t) => {
  const path = join(temporaryDirectory(t), "secret");
  for (const [ending, left] of Object.entries({
    "\n": "",
    "\r\n": "",
    "\n\n": "\n",
    " \n": " ",
    "\r": "\r",
  })) {
    writeFileSync(path, good + ending);
    const read = readSecretText({ WEBHOOK_SECRET: "", WEBHOOK_SECRET_FILE: path }, "WEBHOOK_SECRET");
    assert.deepEqual(read, { text: good + left, fault: null });
  }
});

test("a file that cannot be read, or one beside the variable, is refused", (t) => {
  const directory = temporaryDirectory(t);
  for (const [env, reason] of [
    [{ WEBHOOK_SECRET_FILE: join(directory, "none") }, /ENOENT/],
    [{ WEBHOOK_SECRET_FILE: directory }, /is not a regular file/],
    [{ WEBHOOK_SECRET: good, WEBHOOK_SECRET_FILE: directory }, /both set/],
  ] as const) {
    const { text, fault } = readSecretText(env, "WEBHOOK_SECRET");
    assert.equal(text, "");
    assert.match(fault ?? "", reason);
  }
});
