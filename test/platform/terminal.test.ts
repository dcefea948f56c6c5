import assert from "node:assert/strict";
import { test } from "node:test";
import { cleaned, control, openTerminal } from "../../src/platform/terminal.ts";

test("only control sequences of this process reach a terminal", () => {
  const { paint } = openTerminal({ isTTY: true } as NodeJS.WriteStream, {});
  const text = paint("red", `a\u001b[31m\u001b]52;c;eA==\u0007\u009b2J\u202eb\r\b\u007f`);
  const visible = "a\\u001b[31m\\u001b]52;c;eA==\\u0007\\u009b2J\\u202eb\\u000d\\u0008\\u007f";
  assert.equal(cleaned(text), `\u001b[31m${visible}\u001b[39m`);
  assert.equal(cleaned(`${control("K")}a\tb\n`), "\u001b[Ka\tb\n");
});

test("JSON means the same when it is cleaned", () => {
  const value = { subject: "a\u001b[31m\u009b2J\u202e\u2066\u061cz", "\u0085": "\n\t\r" };
  const text = cleaned(JSON.stringify(value));
  assert.match(text, /^[\x20-\x7e]+$/);
  assert.deepEqual(JSON.parse(text), value);
});
