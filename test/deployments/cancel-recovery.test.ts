import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { callRun } from "../../src/calls/client.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { untilDeployment } from "../harness/records.ts";
import { letGo, type RunningService, startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

/** Does not end when it is asked to, but when there is a file `go`, with the exit code in it. */
const stubbornScript = `#!/bin/sh
trap 'echo asked' TERM
echo "$DEPLOY_ID" >>runs
echo started
while [ -e deploy.sh ] && [ ! -e go ]; do sleep 0.02; done
exit "$(cat go)"
`;

test("a cancelled deployment that dies with its service is not run again", async (t) => {
  const service = await killInMidCancel(t);
  process.kill(-service.pid, "SIGKILL");
  const next = await service.again();
  await untilCancelled(next);
});

test("the next service ends the script of a deployment that was being cancelled", async (t) => {
  const service = await killInMidCancel(t);
  const next = await service.again();
  await next.log.waitFor(({ event }) => event === "deployment.adopted");
  letGo(service.repoPath);
  await untilCancelled(next);
});

for (const [exitCode, state] of [
  [3, "cancelled"],
  [0, "succeeded"],
] as const) {
  test(`a script cancelled before a crash that exits with ${exitCode} has ${state}`, async (t) => {
    const service = await killInMidCancel(t);
    letGo(service.repoPath, exitCode);
    await until("the script has ended", () => existsSync(join(service.statePath, "runs/1/exit")));
    const next = await service.again();
    await untilDeployment(next.statePath, 1, (deployment) => deployment.state === state);
  });
}

/** A service that was killed when it had asked the script of deployment 1 to end, which goes on. */
async function killInMidCancel(t: TestContext): Promise<RunningService & { readonly pid: number }> {
  const service = await startService(t, { script: stubbornScript });
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ msg }) => msg === "started");
  const pid = Number(readFileSync(join(service.statePath, "runs/1/pid"), "utf8"));
  await callRun(service.statePath, "cancel", { id: "latest" });
  await service.log.waitFor(({ msg }) => msg === "asked");
  await service.end("SIGKILL");
  return { ...service, pid };
}

async function untilCancelled({ statePath, repoPath }: RunningService): Promise<void> {
  const { attempts } = await untilDeployment(statePath, 1, ({ state }) => state === "cancelled");
  assert.equal(attempts, 1);
  assert.equal(readFileSync(join(repoPath, "runs"), "utf8"), "1\n");
}
