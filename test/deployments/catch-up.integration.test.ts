import assert from "node:assert/strict";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Delivery, deliver, githubPush } from "../harness/delivery.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeProject, type Project } from "../harness/repository.ts";
import { type RunningService, startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const everySecond = { CATCH_UP_INTERVAL: "1s" };

test("a push that was missed while the service was stopped is deployed after its start", async (t) => {
  const project = makeProject(t);
  const first = await startService(t, { repoPath: project.repoPath });
  await deployHead(first, project);
  await first.end();
  const missed = project.commit();
  const second = await first.again({ env: { CATCH_UP_INTERVAL: "24h" } });
  const { state, trigger, commit } = await untilDeployment(second.statePath, 2, isDone);
  assert.deepEqual([state, trigger, commit], ["succeeded", "catch-up", missed]);
});

test("a push whose delivery never comes is found at the next look and deployed once", async (t) => {
  const project = makeProject(t);
  const service = await startService(t, { repoPath: project.repoPath, env: everySecond });
  await deployHead(service, project);
  const missed = project.commit();
  assert.equal((await untilDeployment(service.statePath, 2, isDone)).commit, missed);
  const after = project.commit();
  assert.equal((await untilDeployment(service.statePath, 3, isDone)).commit, after);
  await deliver(service.url, githubPush({ after }));
  assert.equal((await untilDeployment(service.statePath, 4, isDone)).state, "skipped");
});

test("a remote that does not answer is logged once, and again after it has answered", async (t) => {
  const { service, project, asks } = await startAsking(t, "1s");
  await deployHead(service, project);
  const warnings = () => service.log.lines.filter(({ event }) => event === "catch_up.failed");
  renameSync(project.remotePath, `${project.remotePath}-away`);
  await until("it is logged", () => warnings().length === 1);
  const before = asks().length;
  await until("it was asked again", () => asks().length >= before + 3);
  assert.equal(warnings().length, 1);

  renameSync(`${project.remotePath}-away`, project.remotePath);
  const missed = project.commit();
  assert.equal((await untilDeployment(service.statePath, 2, isDone)).commit, missed);
  renameSync(project.remotePath, `${project.remotePath}-away`);
  await until("it is logged again", () => warnings().length === 2);
});

test("with an interval of 0 only pushes ask", async (t) => {
  const { service, project, asks } = await startAsking(t);
  await deployHead(service, project);
  project.commit();
  await deployHead(service, project, 2);
  assert.equal(asks().length, 2);
});

test("a captured delivery deploys nothing and asks the remote once in 10 s at most", async (t) => {
  const { service, project, asks } = await startAsking(t);
  const captured = await deployHead(service, project);
  project.commit();
  await deployHead(service, project, 2);
  for (let count = 0; count < 20; count += 1) {
    const { status, json } = await deliver(service.url, captured);
    assert.deepEqual([status, json.status, json.deployment?.id], [200, "duplicate", 1]);
  }
  await until("it is asked", () => asks().length > 2);
  git(project.remotePath, "update-ref", "refs/heads/main", "main~1");
  assert.equal((await deliver(service.url, captured)).json.status, "duplicate");
  await until("the remote has said once that it was put back", () => asks().length > 3);
  assert.equal(readDeployments(service.statePath).length, 2);
  const { trigger, commit } = await untilDeployment(service.statePath, 3, isDone);
  assert.deepEqual([trigger, commit], ["catch-up", git(project.remotePath, "rev-parse", "main")]);
  const [, , first = 0, second = 0, third = 0] = asks();
  assert.ok(second - first >= 9_900 && third - second >= 9_900, JSON.stringify(asks()));
});

/** Delivers the push of the branch's head, which becomes deployment `id`, and waits for its end. @returns the delivery */
async function deployHead(service: RunningService, { remotePath }: Project, id = 1): Promise<Delivery> {
  const delivery = githubPush({ after: git(remotePath, "rev-parse", "main") });
  await deliver(service.url, delivery);
  await untilDeployment(service.statePath, id, isDone);
  return delivery;
}

/** A service whose `git` notes when the remote is asked, in milliseconds. */
async function startAsking(t: TestContext, interval = "0") {
  const project = makeProject(t);
  const directory = temporaryDirectory(t);
  const notes = join(directory, "asked");
  writeFileSync(notes, "");
  writeScript(
    join(directory, "git"),
    `#!/bin/sh\ncase " $* " in *" ls-remote "*) date +%s%3N >>${notes} ;; esac\nPATH=\${PATH#*:} exec git "$@"\n`,
  );
  const env = { CATCH_UP_INTERVAL: interval, PATH: `${directory}:${process.env.PATH}` };
  const service = await startService(t, { repoPath: project.repoPath, env });
  const asks = () => readFileSync(notes, "utf8").split("\n").filter(Boolean).map(Number);
  return { service, project, asks };
}

function isDone({ state }: { readonly state: string }): boolean {
  return ["succeeded", "failed", "skipped"].includes(state);
}
