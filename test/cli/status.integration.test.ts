import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, startAnswering } from "../harness/hotpush.ts";

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
