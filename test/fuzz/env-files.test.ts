import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { parseEnv } from "node:util";
import fc from "fast-check";
import { asWritten, rawValue, withoutVariable, withVariable } from "../../src/platform/env-file.ts";
import { withoutOtherValues } from "../../src/setup/planned-file.ts";
import { fuzz } from "./fuzz.ts";

const name = fc.constantFrom("WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS", "REPO_PATH", "PORT", "a.b-c");
const plainValue = fc.stringMatching(/^[\w./:@,+=-]{0,20}$/);
/** Files without an unclosed quote. */
const wholeLine = fc.oneof(
  fc.tuple(name, plainValue).map(([name, value]) => `${name}=${value}`),
  fc.tuple(name, plainValue).map(([name, value]) => `export ${name}='${value} # $x'`),
  name.map((name) => `export ${name}=`),
  name.map((name) => `export\t${name}=1`),
  fc.constantFrom("", "# a comment", '  CERTIFICATE="-----BEGIN\nMIIB\nabc=\n-----END"'),
);
const wholeText = fc.array(wholeLine).map((lines) => lines.join("\n"));

fuzz(
  "a variable that is set is read back, and no other line changes",
  fc.property(wholeText, name, plainValue.filter(Boolean), (content, name, value) => {
    const changed = withVariable(content, name, value);
    assert.equal(rawValue(changed, name), value);
    assert.equal(withVariable(changed, name, value), changed);
    const others = (one: string) =>
      Object.entries(parseEnv(one)).filter(([other]) => other.replace("export ", "") !== name);
    assert.deepEqual(others(changed), others(content));
    assert.equal(rawValue(withoutVariable(changed, name), name), null);
  }),
  2_000,
);

fuzz(
  "Node and a shell read values as they were written",
  fc.property(fc.array(fc.string({ unit: "grapheme-ascii" }), { minLength: 50, maxLength: 50 }), (values) => {
    const written = values.flatMap((value) => asWritten(value) ?? []);
    for (const one of values) {
      const text = asWritten(one);
      if (text !== null) assert.equal(parseEnv(`X=${text}\nY=1`).X, one);
    }
    const script = written.map((one) => `X=${one}\nprintf '%s\\0' "$X"\n`).join("");
    const read = execFileSync("/bin/sh", ["-c", script], { env: {}, encoding: "utf8" });
    assert.deepEqual(
      read.split("\0").slice(0, -1),
      values.filter((value) => asWritten(value) !== null),
    );
  }),
  5_000,
  50,
);

fuzz(
  "`init` shows no value of a .env file, not even one of several lines",
  fc.property(
    wholeText,
    fc.constantFrom("'", '"', "`"),
    fc.stringMatching(/^[a-z]{12}$/),
    (before, quote, secret) => {
      const content = `${before}\nA=${secret}\nB=${quote}${secret}${quote}\nC=${quote}one\n${secret}\n${quote}\nD=1\n`;
      const shown = withoutOtherValues(content, []);
      assert.ok(!shown.includes(secret), shown);
      assert.match(shown, /^A=…\nB=…\nC=…$/m);
    },
  ),
  2_000,
);
