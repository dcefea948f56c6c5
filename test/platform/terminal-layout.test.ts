import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsOf, fit, wrapFor } from "../../src/platform/terminal.ts";

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
