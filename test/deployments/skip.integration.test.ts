import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { DeploymentJson } from "../../src/calls/shapes.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson, startAnswering } from "../harness/hotpush.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeProject } from "../harness/repository.ts";

/** A service that has deployed the first commit. `deploy` pushes one more and waits for the end of its deployment. */
async function startSkipping(t: TestContext, env: Readonly<Record<string, string>> = {}) {
  const project = makeProject(t);
  project.script("#!/bin/sh\ngit pull --quiet\n");
  const quick = { DEPLOY_RETRY_PAUSES: "0", DEPLOY_ENV: "DEPLOY_RETRY_PAUSES" };
  const service = await startAnswering(t, { repoPath: project.repoPath, env: { ...quick, ...env } });
  const deploy = async (message: string, files: Readonly<Record<string, string>> = {}) => {
    const after = project.push(message, files);
    const { json } = await deliver(service.url, githubPush({ after }));
    const isOver = ({ state }: { state: string }) => !["queued", "running"].includes(state);
    return (await untilDeployment(service.statePath, json.deployment?.id ?? 0, isOver)).state;
  };
  assert.equal(await deploy("The first"), "succeeded");
  return { project, service, deploy };
}

test("with DEPLOY_PATHS a push is deployed only if a matching file differs from what is live", async (t) => {
  const { deploy, service } = await startSkipping(t, {
    DEPLOY_PATHS: "apps/shop/** packages/*/src !**/*.md",
    // A variable of the service must not make the patterns plain names.
    GIT_LITERAL_PATHSPECS: "1",
  });
  const cases = [
    ["another app", "apps/blog/a.ts", "skipped"],
    ["the app", "apps/shop/src/a.ts", "succeeded"],
    ["a file left out", "apps/shop/README.md", "skipped"],
    ["a file at the root", "shop.ts", "skipped"],
    ["a package", "packages/ui/src/a.ts", "succeeded"],
    ["beside the source of a package", "packages/ui/test.ts", "skipped"],
  ] as const;
  for (const [what, file, state] of cases) assert.equal(await deploy(what, { [file]: what }), state, what);
  const skipped = readDeployments(service.statePath)[1];
  assert.match(skipped?.skipReason ?? "", /DEPLOY_PATHS/);
  assert.equal(skipped?.checkedOutCommit, skipped?.commit);
});

test("status, history and logs show a skipped deployment, beside a failure before it", async (t) => {
  const { deploy, project, service } = await startSkipping(t);
  project.script("#!/bin/sh\nexit 1\n");
  assert.equal(await deploy("A fault"), "failed");
  const { json } = await deliver(
    service.url,
    githubPush({ after: git(project.remotePath, "rev-parse", "main") }),
  );
  assert.equal(json.deployment?.id, 3);
  await untilDeployment(service.statePath, 3, ({ state }) => state === "skipped");
  const reason = /\w{7}, the head of main, was deployed by deployment 2,/;
  const { last } = await hotpushJson<{ last: readonly DeploymentJson[] }>(service, "status");
  assert.deepEqual(
    last.map(({ state, subject }) => [state, subject]),
    [
      ["failed", "A fault"],
      ["skipped", null],
    ],
  );
  assert.match(last[1]?.skipReason ?? "", reason);
  for (const command of ["status", "history"]) {
    const { stdout } = await hotpush(service, command);
    assert.match(stdout, /skipped/);
    assert.match(stdout, reason, command);
  }
  const logs = await hotpush(service, "logs", "3");
  assert.match(logs.stderr, /^Deployment 3 was skipped after .*\.\n\w{7}, the head of main/m);
  assert.match((await hotpush(service, "logs")).stderr, /^Deployment 2 failed/m);
});
