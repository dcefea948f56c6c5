import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { DeploymentJson } from "../../src/calls/shapes.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson, startAnswering } from "../harness/hotpush.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeProject, type Project } from "../harness/repository.ts";
import type { RunningService } from "../harness/service.ts";
import { letGo, waitingScript } from "../harness/service.ts";

interface Skipping {
  readonly project: Project;
  readonly service: RunningService;
  /** Pushes a commit with its delivery, from the commit pushed last or from `from`. @returns the answer */
  readonly push: (
    message: string,
    files?: Readonly<Record<string, string>>,
    from?: string,
  ) => ReturnType<typeof deliver>;
  /** The same, and waits for the end of its deployment. */
  readonly deploy: (
    message: string,
    files?: Readonly<Record<string, string>>,
    from?: string,
  ) => Promise<string>;
}

const quick = { DEPLOY_RETRY_PAUSES: "0", DEPLOY_ENV: "DEPLOY_RETRY_PAUSES" };

/** A service that has deployed the first commit. */
async function startSkipping(t: TestContext, env: Readonly<Record<string, string>> = {}): Promise<Skipping> {
  const project = makeProject(t);
  project.script("#!/bin/sh\ngit pull --quiet\n");
  const service = await startAnswering(t, { repoPath: project.repoPath, env: { ...quick, ...env } });
  let before = "0".repeat(40);
  const push: Skipping["push"] = (message, files, from = before) => {
    const after = project.push(message, files);
    const delivery = githubPush({ before: from, after, mark: message });
    before = after;
    return deliver(service.url, delivery);
  };
  const deploy: Skipping["deploy"] = async (message, files, from) => {
    const { json } = await push(message, files, from);
    const isOver = ({ state }: { state: string }) => !["queued", "running"].includes(state);
    return (await untilDeployment(service.statePath, json.deployment?.id ?? 0, isOver)).state;
  };
  assert.equal(await deploy("The first"), "succeeded");
  return { project, service, push, deploy };
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
  assert.match(
    skipped?.skipReason ?? "",
    /^No file that DEPLOY_PATHS names differs between \w{7}, which is live, and \w{7}\.$/,
  );
  assert.equal(skipped?.checkedOutCommit, skipped?.commit);
});

test("changes of a failed push are deployed with the next, also if that puts them back", async (t) => {
  const { deploy, project } = await startSkipping(t, { DEPLOY_PATHS: "app" });
  project.script("#!/bin/sh\nexit 1\n");
  assert.equal(await deploy("A fault", { app: "1", notes: "1" }), "failed");
  project.script("#!/bin/sh\ngit pull --quiet\n");
  assert.equal(await deploy("Notes", { notes: "2" }), "succeeded");
  assert.equal(await deploy("More notes", { notes: "3" }), "skipped");
});

test("a deployment by hand ignores both rules", async (t) => {
  const { deploy, service } = await startSkipping(t, { DEPLOY_PATHS: "app" });
  assert.equal(await deploy("Notes [skip deploy]", { notes: "1" }), "skipped");
  const { code, stdout } = await hotpush(service, "deploy");
  assert.equal(code, 0, stdout);
});

test("[skip deploy] in the subject skips a push, in any case, and the log says why", async (t) => {
  const { deploy, service } = await startSkipping(t);
  assert.equal(await deploy("Fix a typo [Skip Deploy]"), "skipped");
  const line = await service.log.waitFor(({ event }) => event === "deployment.skipped");
  assert.match(line.msg ?? "", /^Deployment 2 was skipped: The subject of \w{7} has \[skip deploy\]\.$/);
  assert.equal(await deploy("Explain the marker\n\nIt is [skip deploy]."), "succeeded");
  assert.equal(await deploy("[skip deploy] Correct it"), "skipped");
  assert.equal(await deploy("Go on"), "succeeded");
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

test("a push with the marker that supersedes a waiting one is deployed", async (t) => {
  const { project, push, service } = await startSkipping(t);
  project.script(waitingScript);
  await push("It runs");
  await push("It waits");
  await push("Notes [skip deploy]");
  letGo(project.repoPath);
  const ended = await untilDeployment(service.statePath, 4, ({ state }) => state !== "queued");
  assert.equal(ended.skipReason, null);
  await untilDeployment(service.statePath, 4, ({ state }) => state === "succeeded");
  assert.equal(readDeployments(service.statePath)[2]?.supersededBy, 4);
});

test("catch-up skips a commit that says so, once", async (t) => {
  const { project, service } = await startSkipping(t, { CATCH_UP_INTERVAL: "1s" });
  project.push("Notes [skip deploy]");
  const skipped = await untilDeployment(service.statePath, 2, ({ state }) => state === "skipped");
  assert.equal(skipped.trigger, "catch-up");
  const tip = project.push("A change");
  const next = await untilDeployment(service.statePath, 3, ({ state }) => state === "succeeded");
  assert.equal(next.commit, tip);
});

test("a push with the marker is deployed if the delivery of the push before it was lost", async (t) => {
  const { project, deploy } = await startSkipping(t);
  const lost = project.push("A change");
  assert.equal(await deploy("Notes [skip deploy]", {}, lost), "succeeded");
  assert.equal(await deploy("More notes [skip deploy]"), "skipped");
});

test("catch-up deploys what was lost with a newer push that has the marker", async (t) => {
  const { project, service } = await startSkipping(t);
  await service.end();
  project.push("A change");
  project.push("Notes [skip deploy]");
  await service.again({ env: { ...quick, CATCH_UP_INTERVAL: "1s" } });
  const caughtUp = await untilDeployment(
    service.statePath,
    2,
    ({ state }) => state !== "queued" && state !== "running",
  );
  assert.deepEqual([caughtUp.trigger, caughtUp.state], ["catch-up", "succeeded"]);
});

test("where git cannot compare, a push is deployed", async (t) => {
  const service = await startAnswering(t, { env: { ...quick, DEPLOY_PATHS: "app" } });
  for (const id of [1, 2]) {
    await deliver(service.url, githubPush({ mark: "Notes [skip deploy]" }));
    await untilDeployment(service.statePath, id, ({ state }) => state === "succeeded");
  }
});
