import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { StatusJson } from "../../src/calls/shapes.ts";
import { readVersion } from "../../src/version.ts";
import { runCli } from "../harness/cli.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson, startAnswering } from "../harness/hotpush.ts";
import { letGo } from "../harness/script.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const script = `#!/bin/sh
echo "==> Build"
while [ -d "$REPO_PATH" ] && [ ! -e "$REPO_PATH/go" ]; do sleep 0.02; done
exit "$(cat "$REPO_PATH/go")"
`;

test("status shows what runs, its step, what waits, and the last of each branch", async (t) => {
  const service = await startAnswering(t, { script });
  const before = await hotpushJson<StatusJson>(service, "status");
  assert.deepEqual(
    [before.version, before.running, before.waiting, before.last],
    [readVersion(), null, [], []],
  );
  assert.deepEqual(before.health, { isHealthy: true, detail: null });
  for (const ref of ["refs/heads/main", "refs/heads/master"]) await deliver(service.url, githubPush({ ref }));
  await service.log.waitFor(({ event }) => event === "deployment.step");
  const during = await hotpushJson<StatusJson>(service, "status");
  assert.deepEqual([during.running?.deployment.id, during.running?.step?.name], [1, "Build"]);
  assert.deepEqual(
    during.waiting.map(({ id }) => id),
    [2],
  );
  const text = await hotpush(service, "status");
  assert.match(
    text.stdout,
    /\nNow {8}deployment 1, main at [0-9a-f]{7} \(push\), for .+\n {11}step Build, for .+\n/,
  );
  assert.match(text.stdout, /\nWaiting {4}deployment 2, master at/);
  letGo(service.repoPath, 3);
  await service.log.waitForEnding(2);
  const after = await hotpush(service, "status");
  assert.match(
    after.stdout,
    /\nNow {8}nothing runs\nWaiting {4}nothing\nLast {7}deployment 1, main at .+: failed/,
  );
  assert.match(after.stdout, /\n {11}deployment 2, master at .+: failed/);
  assert.equal(after.code, 0);
});

test("an empty history says what to do, and --limit limits it", async (t) => {
  const service = await startAnswering(t);
  assert.match(
    (await hotpush(service, "history")).stdout,
    /^Nothing was deployed yet\. Push to main, or run: hotpush deploy\n$/,
  );
  assert.equal(
    (await hotpush(service, "logs")).stderr,
    "hotpush: Nothing was deployed yet. Push to main, or run: hotpush deploy\n",
  );
  for (const id of [1, 2, 3]) {
    await deliver(service.url, githubPush());
    await service.log.waitForEnding(id);
  }
  const { stdout } = await hotpush(service, "history", "--limit", "2");
  assert.deepEqual(
    [...stdout.matchAll(/^(\d+) +succeeded /gm)].map(([, id]) => id),
    ["3", "2"],
  );
  assert.equal((await hotpush(service, "history", "--limit", "0")).code, 2);
});

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

test("commands that need the service say where they looked, and what to do", async (t) => {
  const { statePath, end } = await startAnswering(t);
  await end();
  for (const name of ["status", "history", "logs", "deploy", "cancel", "rollback"]) {
    const { code, stdout, stderr } = await hotpush({ statePath }, name);
    assert.deepEqual([code, stdout], [1, ""], name);
    assert.match(
      stderr,
      /^hotpush: No Hotpush runs deployments in .*\/state: there is no .*control\.sock\. Start it, or set STATE_PATH .*docker compose exec hotpush hotpush status/,
    );
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
