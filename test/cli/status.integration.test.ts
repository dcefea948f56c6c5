import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, runCli, startAnswering } from "../harness/hotpush.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("no line of a table is longer than 80 columns, even with long names", async (t) => {
  const service = await startAnswering(t, {
    script: `#!/bin/sh\necho "==> ${"A step with a long name ".repeat(8)}"\nexit 1\n`,
    env: { WEBHOOK_SECRET_PREVIOUS: "x".repeat(32) },
  });
  await deliver(service.url, githubPush({}, "x".repeat(32)));
  await service.log.waitForEnding(1);
  for (const command of ["status", "history"]) {
    for (const line of (await hotpush(service, command)).stdout.split("\n"))
      assert.ok(line.length <= 80, line);
  }
});

test("STATE_PATH is read from the .env of the working directory, as by the service", async (t) => {
  const service = await startAnswering(t);
  writeFileSync(`${service.repoPath}/.env`, `STATE_PATH=${service.statePath}\n`);
  const { code } = await hotpush(
    { ...service, env: { STATE_PATH: undefined }, cwd: service.repoPath },
    "status",
  );
  assert.equal(code, 0);
});

test("status starts without loading the roll-out or the Docker client", async (t) => {
  const directory = temporaryDirectory(t);
  const hooks = join(directory, "hooks.mjs");
  const load = "(url, context, next) => { console.error(url); return next(url, context); }";
  writeFileSync(hooks, `import { registerHooks } from "node:module";\nregisterHooks({ load: ${load} });\n`);
  const env = { NODE_OPTIONS: `--import=${hooks}`, STATE_PATH: directory };
  const { stderr } = await runCli(["status"], { cwd: directory, env });
  assert.match(stderr, /\/src\/cli\/status\.ts$/m);
  assert.doesNotMatch(stderr, /\/src\/(?:rollout|platform\/docker)\//);
});
