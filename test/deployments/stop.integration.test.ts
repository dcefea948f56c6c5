import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { letGo, patientScript, type RunningService, startService } from "../harness/service.ts";

const deafScript = patientScript.replace("echo up", "trap '' TERM\necho up");

test("by default a service that is stopped while it deploys exits with 0 after 5 s", async (t) => {
  const service = await startDeploying(t, deafScript);
  const startMs = performance.now();
  assert.equal(await service.end("SIGTERM"), 0);
  assert.ok(performance.now() - startMs >= 5_000);
  const [deployment] = readDeployments(service.statePath);
  assert.deepEqual([deployment?.state, deployment?.problem?.code], ["interrupted", "deployment_interrupted"]);
  letGo(service.repoPath);
  const next = await service.again();
  const { attempts } = await untilDeployment(next.statePath, 1, ({ state }) => state === "succeeded");
  assert.equal(attempts, 2);
  assert.equal(readFileSync(join(next.repoPath, "runs"), "utf8"), "1\n1\n");
});

test("a second signal ends the service at once; the script lives on and is adopted", async (t) => {
  const service = await startDeploying(t, deafScript, { SHUTDOWN_GRACE: "10m" });
  service.child.kill("SIGTERM");
  await service.log.waitFor(({ event }) => event === "service.stopping");
  assert.equal(await service.end("SIGTERM"), 0);
  const next = await service.again();
  await next.log.waitFor(({ event }) => event === "deployment.adopted");
  letGo(service.repoPath);
  assert.equal((await next.log.waitForEnding(1)).event, "deployment.succeeded");
});

test("a signal that means nothing to a service changes nothing, while a script runs neither", async (t) => {
  const service = await startDeploying(t, patientScript);
  for (const signal of ["SIGHUP", "SIGPIPE", "SIGUSR1", "SIGWINCH"] as const) service.child.kill(signal);
  letGo(service.repoPath);
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
  // Of SIGUSR1 Node would open its debugger to every user of the machine.
  assert.deepEqual(service.log.otherText, []);
});

async function startDeploying(
  t: TestContext,
  script: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningService> {
  const service = await startService(t, { script, env });
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ msg }) => msg === "up");
  return service;
}
