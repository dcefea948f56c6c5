import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { githubPush } from "../../harness/delivery.ts";
import { makeMachine, type RunningRole } from "../../harness/machine.ts";
import { readDeployments } from "../../harness/records.ts";
import { temporaryDirectory, writeScript } from "../../harness/temporary.ts";
import { until } from "../../harness/until.ts";

function makeCheckout(t: TestContext): string {
  const path = temporaryDirectory(t);
  writeScript(join(path, "deploy.sh"), "#!/bin/sh\n");
  return path;
}

async function push(service: RunningRole, ref: string): Promise<string> {
  const response = await fetch(service.urlOf("shop"), { method: "POST", ...githubPush({ ref }) });
  const body = (await response.json()) as { status?: string; reason?: string };
  return body.status === "ignored" ? String(body.reason) : String(response.status);
}

test("a push is not lost if only front knows the new settings of its project", async (t) => {
  const machine = makeMachine(t);
  const repoPath = makeCheckout(t);
  machine.addProject("shop", repoPath, { BRANCH: "main" });
  const [front, run] = await Promise.all([machine.start("front"), machine.start("run")]);
  assert.equal(await push(front, "refs/heads/main"), "202");
  run.child.kill("SIGSTOP");
  machine.addProject("shop", repoPath, { BRANCH: "master" });
  await until("front knows", async () => (await push(front, "refs/heads/master")) === "202");
  run.child.kill("SIGCONT");
  await until("it is recorded", () => readDeployments(run.statePath).length === 2);
  assert.equal(readDeployments(run.statePath)[1]?.ref, "refs/heads/master");
});

test("a push of a project that was removed while run was down waits for its return", async (t) => {
  const machine = makeMachine(t);
  const repoPath = makeCheckout(t);
  machine.addProject("shop", repoPath);
  const front = await machine.start("front");
  const run = await machine.start("run");
  assert.equal(await push(front, "refs/heads/main"), "202");
  await until("it is recorded", () => readDeployments(run.statePath).length === 1);
  await run.end();
  assert.equal(await push(front, "refs/heads/main"), "202");
  rmSync(join(machine.projectsPath, "shop.env"));
  const next = await machine.start("run");
  await until("it is recorded", () => readDeployments(next.statePath).length === 2);
  machine.addProject("shop", repoPath);
  await until("it was started", () => next.log.lines.some(({ deployment }) => deployment === 2));
});
