import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { readDeployments, readLog, untilDeployment } from "../harness/records.ts";
import { letGo, type RunningService, startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

/**
 * Says where it is, and goes on when there is a file `gap`, then one `go`, in which its exit code is. It ends when its
 * directory is removed: no test leaves one behind.
 */
const scriptWithGap = `#!/bin/sh
echo "$DEPLOY_ID" >>runs
echo before
while [ -e deploy.sh ] && [ ! -e gap ]; do sleep 0.02; done
echo in the gap
while [ -e deploy.sh ] && [ ! -e go ]; do sleep 0.02; done
echo after
exit "$(cat go)"
`;

test("a script that outlives its service is adopted, with all of its output and its exit code", async (t) => {
  const first = await startDeploying(t, scriptWithGap);
  await first.end("SIGKILL");
  writeFileSync(join(first.repoPath, "gap"), "");
  const second = await first.again();
  await second.log.waitFor(({ event }) => event === "deployment.adopted");
  await second.log.waitFor(({ msg }) => msg === "in the gap");
  letGo(first.repoPath, 3);
  assert.equal((await second.log.waitForEnding(1)).exitCode, 3);
  const recorded = await untilDeployment(second.statePath, 1, ({ state }) => state === "failed");
  assert.deepEqual([recorded.exitCode, recorded.attempts], [3, 1]);
  assert.equal(readLog(second.statePath, 1), "before\nin the gap\nafter\n");
  assert.equal(runsIn(second), "1\n");
});

for (const [exitCode, state] of [
  [0, "succeeded"],
  [3, "failed"],
] as const) {
  test(`a script that ended with ${exitCode} while no service ran is recorded with that`, async (t) => {
    const first = await startDeploying(t, scriptWithGap);
    await first.end("SIGKILL");
    const supervisor = supervisorOf(first);
    letEnd(first, exitCode);
    await until("the script has ended", () => existsSync(join(first.statePath, "runs/1/exit")));
    const second = await first.again();
    await second.log.waitFor(({ event }) => event === "deployment.ended_unwatched");
    const recorded = await untilDeployment(second.statePath, 1, (deployment) => deployment.state === state);
    assert.deepEqual([recorded.exitCode, recorded.attempts], [exitCode, 1]);
    assert.equal(runsIn(second), "1\n");
    assert.equal(readLog(second.statePath, 1), "before\nin the gap\nafter\n");
    await until("its supervisor is gone", () => !existsSync(`/proc/${supervisor}`));
  });
}

test("what is left of a run whose supervisor was killed too never runs beside the next attempt", async (t) => {
  const closesLock = `#!/bin/sh
exec 3>&-
for pid in $(cat pids 2>/dev/null); do kill -0 "$pid" 2>/dev/null && touch both; done
echo $$ >>pids
echo before
while [ -e deploy.sh ] && [ ! -e go ]; do sleep 0.02; done
`;
  const first = await startDeploying(t, closesLock);
  const supervisor = supervisorOf(first);
  await first.end("SIGKILL");
  process.kill(supervisor, "SIGKILL");
  const second = await first.again();
  const pids = () => readFileSync(join(first.repoPath, "pids"), "utf8").trim().split("\n");
  await until("it runs again", () => pids().length === 2);
  letGo(first.repoPath);
  await untilDeployment(second.statePath, 1, ({ state }) => state === "succeeded");
  assert.ok(!existsSync(join(first.repoPath, "both")));
});

test("a script is adopted through three more crashes, and pushes wait for it", async (t) => {
  let service = await startDeploying(t, scriptWithGap);
  for (let deaths = 0; deaths < 3; deaths += 1) {
    await service.end("SIGKILL");
    service = await service.again();
    await service.log.waitFor(({ event }) => event === "deployment.adopted");
    assert.equal((await deliver(service.url, githubPush())).json.deployment?.state, "queued");
  }
  letEnd(service);
  await untilDeployment(service.statePath, 4, ({ state }) => state === "succeeded");
  assert.equal(runsIn(service), "1\n4\n");
});

test("a script that is killed with its service runs again, three times at most", async (t) => {
  let service = await startDeploying(t, scriptWithGap);
  for (const attempt of [1, 2, 3]) {
    await untilDeployment(service.statePath, 1, ({ attempts }) => attempts === attempt);
    await until("the script runs", () => runsIn(service) === "1\n".repeat(attempt));
    await killWithScript(service);
    service = await service.again();
  }
  const { problem } = await untilDeployment(service.statePath, 1, ({ state }) => state === "failed");
  assert.equal(problem?.code, "deployment_gave_up");
  assert.equal(runsIn(service), "1\n1\n1\n");
});

test("a script that is still dying when the next service starts runs again", async (t) => {
  // This process holds the lock of the run, but its environment cannot be read: it is exiting.
  const lastMoments =
    "setsid env -i sh -c '>dying; while [ ! -e dead ] && [ -e deploy.sh ]; do sleep 0.02; done' &";
  const service = await startDeploying(
    t,
    scriptWithGap.replace("echo before", `${lastMoments}\necho before`),
  );
  await until("it is dying", () => existsSync(join(service.repoPath, "dying")));
  await killWithScript(service);
  letEnd(service);
  const next = await service.again();
  await next.log.waitFor(({ event }) => event === "deployment.adopted");
  writeFileSync(join(service.repoPath, "dead"), "");
  const { attempts } = await untilDeployment(next.statePath, 1, ({ state }) => state === "succeeded");
  assert.equal(attempts, 2);
  assert.equal(runsIn(next), "1\n1\n");
});

test("a deployment that died with its service is superseded if a newer push waits", async (t) => {
  const service = await startDeploying(t, scriptWithGap);
  await deliver(service.url, githubPush());
  await killWithScript(service);
  letEnd(service);
  const next = await service.again();
  await untilDeployment(next.statePath, 2, ({ state }) => state === "succeeded");
  const [first] = readDeployments(next.statePath);
  assert.deepEqual([first?.state, first?.supersededBy], ["superseded", 2]);
  assert.equal(runsIn(next), "1\n2\n");
});

test("an adopted script still has its time-out", async (t) => {
  const first = await startDeploying(t, scriptWithGap, { DEPLOY_TIMEOUT: "3s" });
  const pid = supervisorOf(first);
  await first.end("SIGKILL");
  const second = await first.again();
  assert.equal((await second.log.waitForEnding(1)).event, "deployment.timed_out");
  assert.throws(() => process.kill(-pid, 0), { code: "ESRCH" });
});

async function startDeploying(
  t: TestContext,
  script: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningService> {
  const service = await startService(t, { script, env });
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ msg }) => msg === "before");
  return service;
}

async function killWithScript(service: RunningService): Promise<void> {
  const pid = supervisorOf(service);
  await service.end("SIGKILL");
  process.kill(-pid, "SIGKILL");
}

/** Lets the patient script go on to its end. */
function letEnd({ repoPath }: RunningService, exitCode = 0): void {
  writeFileSync(join(repoPath, "gap"), "");
  letGo(repoPath, exitCode);
}

/** The process group of the script of deployment 1. */
function supervisorOf({ statePath }: RunningService): number {
  return Number(readFileSync(join(statePath, "runs/1/pid"), "utf8"));
}

function runsIn({ repoPath }: RunningService): string {
  return readFileSync(join(repoPath, "runs"), "utf8");
}
