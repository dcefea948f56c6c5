import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson, startAnswering } from "../harness/hotpush.ts";
import { makeProject, type Project } from "../harness/repository.ts";
import type { RunningService } from "../harness/service.ts";
import { letGo, waitingScript } from "../harness/service.ts";

interface Answer {
  readonly deployment: {
    readonly id: number;
    readonly state: string;
    readonly trigger: string;
    readonly commit: string;
  };
}

test("deploy deploys the remote's head, shows its steps, and exits with its result", async (t) => {
  const { service, project } = await start(
    t,
    '#!/bin/sh\necho "==> Build"\necho "$DEPLOY_TRIGGER $2"\ngit pull -q\n',
  );
  const head = project.commit();
  const { code, stdout } = await hotpush(service, "deploy");
  assert.equal(code, 0);
  assert.ok(stdout.includes(`\n==> Build\nmanual ${head}\n`), stdout);
});

test("deploy queues, supersedes what waits, and with --detach does not wait", async (t) => {
  const { service, project } = await start(t, waitingScript);
  for (const _ of [1, 2]) await deliver(service.url, githubPush({ after: project.commit() }));
  const { deployment } = await hotpushJson<Answer>(service, "deploy", "--detach");
  assert.deepEqual([deployment.id, deployment.state, deployment.trigger], [3, "queued", "manual"]);
  const { deployments } = await hotpushJson<{ deployments: Answer["deployment"][] }>(service, "history");
  assert.deepEqual(
    deployments.map(({ state }) => state),
    ["queued", "superseded", "running"],
  );
  letGo(service.repoPath);
  assert.equal((await service.log.waitForEnding(3)).event, "deployment.succeeded");
});

test("within a deploy script, deploy does not wait for its end", async (t) => {
  const { service } = await start(t, '#!/bin/sh\n[ "$DEPLOY_ID" != 1 ] || hotpush deploy\n');
  await deliver(service.url, githubPush());
  assert.equal((await service.log.waitForEnding(2)).event, "deployment.succeeded");
});

test("cancel ends the running script and all it started, then the next one runs", async (t) => {
  const { service, project } = await start(
    t,
    `#!/bin/sh\n[ "$DEPLOY_ID" != 1 ] || sleep 600 & echo started; wait\n`,
  );
  for (const _ of [1, 2]) await deliver(service.url, githubPush({ after: project.commit() }));
  await service.log.waitFor(({ msg }) => msg === "started");
  const { code, stdout } = await hotpush(service, "cancel");
  assert.deepEqual([code, stdout.split("\n")[0]], [0, "Deployment 1 is being cancelled."]);
  assert.match(stdout, /\nDeployment 1 was cancelled after .+\.\n$/);
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.cancelled");
  assert.equal((await service.log.waitForEnding(2)).event, "deployment.succeeded");
});

test("a queued deployment is cancelled at once and never runs", async (t) => {
  const { service } = await start(t, waitingScript);
  for (const _ of [1, 2]) await deliver(service.url, githubPush());
  const { deployment } = await hotpushJson<Answer>(service, "cancel", "2");
  assert.deepEqual([deployment.id, deployment.state], [2, "cancelled"]);
  letGo(service.repoPath);
  await service.log.waitForEnding(1);
  const third = await hotpushJson<Answer>(service, "deploy");
  assert.equal(third.deployment.id, 3);
  assert.ok(
    !service.log.lines.some(({ event, deployment: id }) => event === "deployment.started" && id === 2),
  );
});

test("a cancelled deployment runs when its delivery is sent again", async (t) => {
  const { service } = await start(t, waitingScript);
  const push = githubPush();
  await deliver(service.url, push);
  await service.log.waitFor(({ msg }) => msg === "started");
  assert.equal((await hotpush(service, "cancel")).code, 0);
  letGo(service.repoPath);
  assert.equal((await deliver(service.url, push)).status, 202);
  assert.equal((await service.log.waitFor(({ event }) => event === "deployment.succeeded")).deployment, 1);
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

async function start(t: TestContext, script: string): Promise<{ service: RunningService; project: Project }> {
  const project = makeProject(t);
  project.script(script);
  return { service: await startAnswering(t, { repoPath: project.repoPath }), project };
}
