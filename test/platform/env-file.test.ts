import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { rawValue, withoutVariable, withVariable } from "../../src/platform/env-file.ts";

/** Each sets A, or only seems to; the service reads them with parseEnv. */
const statements = [
  "A=1",
  "  A = 1 # why",
  "export  A='1'",
  "A=",
  "A=\r",
  "A=`1`",
  "A='open",
  "# A=1",
  "A B=1",
];

test("finds in each statement what the service reads", () => {
  for (const statement of statements) {
    const text = `X=1\n${statement}\nY=2\n`;
    assert.equal(rawValue(text, "A") !== null, parseEnv(text).A !== undefined, statement);
    const changed = withVariable(text, "A", "new");
    assert.deepEqual({ ...parseEnv(changed) }, { ...parseEnv(text), A: "new" }, statement);
    const { A: _removed, ...others } = parseEnv(text);
    assert.deepEqual({ ...parseEnv(withoutVariable(changed, "A")) }, others, statement);
  }
  for (const text of ['A="one\ntwo"\nB=1', 'A="1\nB=2\n" # why', "A= \nB=1\nC=2\n"])
    assert.throws(() => withVariable(text, "A", "3"), { name: "CommandError" });
});
