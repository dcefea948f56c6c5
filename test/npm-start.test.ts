import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { testSecret } from "./harness/delivery.ts";
import { LogReader } from "./harness/processes.ts";
import { serviceEnvironment } from "./harness/service.ts";
import { temporaryDirectory, writeScript } from "./harness/temporary.ts";

test("a signal to npm start stops the service, with a clean shutdown", async (t) => {
  const repoPath = temporaryDirectory(t);
  writeScript(join(repoPath, "deploy.sh"), "#!/bin/sh\n");
  const npm = spawn("npm", ["--silent", "start"], {
    cwd: join(import.meta.dirname, ".."),
    env: {
      ...serviceEnvironment(),
      WEBHOOK_SECRET: testSecret,
      REPO_PATH: repoPath,
      STATE_PATH: join(repoPath, "state"),
    },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const log = new LogReader(npm);
  t.after(() => {
    try {
      process.kill(-(npm.pid ?? 0), "SIGKILL");
    } catch {
      // All of them have exited, as expected.
    }
  });
  await log.waitFor(({ event }) => event === "service.started");
  const ended = once(npm, "exit");
  npm.kill("SIGTERM");
  await log.waitFor(({ event }) => event === "service.stopped");
  assert.deepEqual(await ended, [0, null]);
});
