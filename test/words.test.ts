import assert from "node:assert/strict";
import { test } from "node:test";
import { misspelledIn } from "./words.ts";

test("a misspelled word is reported with its line and the right spelling", () => {
  assert.deepEqual(misspelledIn("src/a.ts", "const a = 1;\n// Recieved from Github.\n"), [
    'src/a.ts:2: "Github". Write: GitHub.',
    'src/a.ts:2: "Recieve". Write: receive.',
  ]);
  assert.deepEqual(misspelledIn("a.md", "Received from GitHub; superseded, successful."), []);
});
