import assert from "node:assert/strict";
import { test } from "node:test";
import { wrongImportsIn } from "./imports.ts";

test("an import of a part above is reported, also of a type or in a call", () => {
  const above = 'import type { Queue } from "../deployments/queue.ts";\nawait import("../run.ts");\n';
  assert.equal(wrongImportsIn("platform/http.ts", above).length, 2);
  assert.deepEqual(wrongImportsIn("run.ts", 'import { a } from "./platform/http.ts";'), []);
});

test("a part uses of another what package.json names, and no file by its path", () => {
  const crossing = 'import type { Settings } from "../config/settings.ts";';
  assert.equal(wrongImportsIn("runner/runner.ts", crossing).length, 1);
  assert.equal(wrongImportsIn("platform/http.ts", 'import { a } from "#deployments/queue";').length, 1);
  assert.deepEqual(wrongImportsIn("runner/runner.ts", 'import { a } from "#config/settings";'), []);
});

test("only the parts that are made for it start programs and open databases", () => {
  assert.equal(
    wrongImportsIn("front/webhook/webhook.ts", 'import { spawn } from "node:child_process";').length,
    1,
  );
  assert.deepEqual(wrongImportsIn("platform/sqlite.ts", 'import "node:sqlite";'), []);
});

test("what runs as root opens files of others by the one module that is made for it", () => {
  const read = 'import { existsSync, readFileSync } from "node:fs";';
  for (const path of ["redaction.ts", "deployments/queue.ts", "calls/projects.ts", "run.ts"])
    assert.equal(wrongImportsIn(path, read).length, 1, path);
  assert.equal(wrongImportsIn("calls/a.ts", 'import * as fs from "node:fs/promises";').length, 1);
  assert.deepEqual(wrongImportsIn("calls/a.ts", 'import { existsSync, statSync } from "node:fs";'), []);
  assert.deepEqual(wrongImportsIn("runner/log-file.ts", read), []);
});
