import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { generateDocs } from "./generate.ts";

test("the generated parts of docs/ are as the code has them: npm run docs writes them", () => {
  for (const [path, page] of generateDocs()) assert.equal(readFileSync(path, "utf8"), page, path);
});
