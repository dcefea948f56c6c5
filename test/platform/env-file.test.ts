import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { rawValue, withoutValues, withoutVariable, withVariable } from "../../src/platform/env-file.ts";

/** Each sets A, or only seems to; the service reads them with parseEnv. */
const statements = [
  "A=1",
  "  A = 1 # why",
  "export A=1",
  "export  A='1'",
  "export A=",
  "export A=  ",
  "export\tA=1",
  "A=",
  "A=\r",
  'A="1\nB=2\n" # why',
  "A=`1`",
  "A='open",
  "# A=1",
  "  # A='1",
  "A B=1",
  "export A= # why",
];

for (const statement of statements) {
  test(`finds in ${JSON.stringify(statement)} what the service reads`, () => {
    const text = `X=1\n${statement}\nY=2\n`;
    const isSet = parseEnv(text).A !== undefined;
    assert.equal(rawValue(text, "A") !== null, isSet);
    const changed = withVariable(text, "A", "new", "X");
    assert.deepEqual({ ...parseEnv(changed) }, { ...parseEnv(text), A: "new" });
    const { A: _removed, ...others } = parseEnv(text);
    assert.deepEqual({ ...parseEnv(withoutVariable(changed, "A")) }, others);
  });
}

test("a value that begins on the next line is one value for the editor too", () => {
  const text = "A= \nB=1\nC=2\n";
  assert.deepEqual({ ...parseEnv(text) }, { A: "B=1", C: "2" });
  assert.equal(rawValue(text, "B"), null);
  assert.equal(withoutVariable(text, "A"), "C=2\n");
  assert.equal(withoutValues(text, new Set()), "A=…\nC=…\n");
});

test("a value of several lines is replaced as a whole", () => {
  const text = 'A="one\ntwo"\nB=1';
  assert.equal(withVariable(text, "A", "3", "B"), "A=3\nB=1");
  assert.equal(withVariable(text, "C", "3", "A"), 'A="one\ntwo"\nC=3\nB=1');
  assert.equal(withVariable(text, "C", "3", "none"), `${text}\nC=3\n`);
});
