import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEnvFile, rawValue, withoutVariable, withVariable } from "../../src/platform/env-file.ts";

/** Each sets A, or only seems to; the service reads them with parseEnvFile. */
const statements = [
  "A=1",
  "  A = 1 # why",
  "export  A='1'",
  "A=",
  "A=\r",
  "A= ",
  "A =\t\r",
  "A=`1`",
  "A='open",
  "# A=1",
  "A B=1",
];

test("finds in each statement what the service reads", () => {
  for (const statement of statements) {
    const text = `X=1\n${statement}\nY=2\n`;
    assert.equal(rawValue(text, "A") !== null, parseEnvFile(text).A !== undefined, statement);
    const changed = withVariable(text, "A", "new");
    assert.deepEqual({ ...parseEnvFile(changed) }, { ...parseEnvFile(text), A: "new" }, statement);
    const { A: _removed, ...others } = parseEnvFile(text);
    assert.deepEqual({ ...parseEnvFile(withoutVariable(changed, "A")) }, others, statement);
  }
  for (const text of ['A="one\ntwo"\nB=1', 'A="1\nB=2\n" # why'])
    assert.throws(() => withVariable(text, "A", "3"), { name: "CommandError" });
});

test("a byte order mark at the start hides no variable, as with compose", () => {
  const text = "\uFEFFA=1\nB=2\n";
  assert.deepEqual({ ...parseEnvFile(text) }, { A: "1", B: "2" });
  assert.deepEqual({ ...parseEnvFile(withVariable(text, "A", "3")) }, { A: "3", B: "2" });
  assert.deepEqual({ ...parseEnvFile(withoutVariable(text, "A")) }, { B: "2" });
});
