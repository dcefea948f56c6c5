import assert from "node:assert/strict";
import { test } from "node:test";
import { wrongImportsIn } from "./imports.ts";

test("lint reports an import upwards, by path, of a part's own, or that opens what others can write", () => {
  const read = 'import { existsSync, readFileSync } from "node:fs";';
  const crossing = 'import type { Settings } from "../config/settings.ts";';
  for (const [path, text, count] of [
    [
      "platform/http.ts",
      'import type { Queue } from "../deployments/queue.ts";\nawait import("../run.ts");\n',
      2,
    ],
    ["run.ts", 'import { a } from "./platform/http.ts";', 0],
    ["runner/runner.ts", crossing, 1],
    ["runner/runner.ts", 'import { a } from "#config/settings";', 0],
    ["runner/runner.ts", 'import { a } from "#rollout/switch-traffic";', 1],
    ["runner/runner.ts", "await import(\n  `#rollout/switch-traffic`\n)", 1],
    ["platform/http.ts", 'import { a } from "#deployments/queue";', 1],
    ["front/webhook/webhook.ts", 'import { spawn } from "node:child_process";', 1],
    ["platform/sqlite.ts", 'import "node:sqlite";', 0],
    ["redaction.ts", read, 1],
    ["calls/projects.ts", read, 1],
    ["calls/a.ts", 'import * as fs from "node:fs/promises";', 1],
    ["calls/a.ts", 'import { existsSync, statSync } from "node:fs";', 0],
    ["runner/log-file.ts", read, 0],
    ["rollout/report.ts", read, 1],
  ] as const)
    assert.equal(wrongImportsIn(path, text).length, count, `${path}: ${text}`);
});
