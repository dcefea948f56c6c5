import assert from "node:assert/strict";
import { test } from "node:test";
import { cleaned, columnsOf, control, fit, openTerminal, wrapFor } from "../../src/platform/terminal.ts";

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

test("text is cut off at the column that it may not pass, and only if it is too long", () => {
  const cases = [
    ["Fix the cart", 12, "Fix the cart"],
    ["Fix the cart", 11, "Fix the ca…"],
    ["Fix the cart", 9, "Fix the…"],
    ["Ship 🚢 it", 6, "Ship…"],
  ] as const;
  for (const [text, most, expected] of cases) {
    assert.equal(fit(text, most), expected);
    assert.ok(columnsOf(fit(text, most)) <= most);
  }
});

test("a terminal that does not know its width has 80 columns", () => {
  const text = "Caddy of this machine serves the project at its host name. ".repeat(5).trim();
  assert.equal(wrapFor({ columns: 0 }, text), wrapFor({ columns: 80 }, text));
  assert.equal(wrapFor({}, text), text);
});
