import assert from "node:assert/strict";
import { test } from "node:test";
import { wrongImportsIn } from "./imports.ts";

test("an import of a part above is reported, also of a type or in a call", () => {
  const above = 'import type { Queue } from "../deployments/queue.ts";\nawait import("../service.ts");\n';
  assert.equal(wrongImportsIn("platform/http.ts", above).length, 2);
  assert.deepEqual(wrongImportsIn("service.ts", 'import { a } from "./platform/http.ts";'), []);
});

test("only the parts that are made for it start programs and open databases", () => {
  assert.equal(wrongImportsIn("receiver/body.ts", 'import { spawn } from "node:child_process";').length, 1);
  assert.deepEqual(wrongImportsIn("platform/sqlite/store.ts", 'import "node:sqlite";'), []);
});
