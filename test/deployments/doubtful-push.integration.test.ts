import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Delivery, deliver, githubPush } from "../harness/delivery.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeProject, type Project } from "../harness/repository.ts";
import { letGo, patientScript, type RunningService, startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** A real remote and a service that never looks by itself: what it asks, it asks because of a push. */

const longestWaitMs = 60_000;

test("a branch pushed back by the same bytes is deployed if the remote says so twice", async (t) => {
  const { service, project, asks } = await startAsking(t);
  const x = head(project);
  const toX = githubPush({ after: x });
  await deployAll(service, [toX]);
  await deployAll(service, [githubPush({ after: project.commit() })]);
  pushBack(project, x);
  const { status, json } = await deliver(service.url, toX);
  assert.deepEqual([status, json.status, json.deployment?.id], [200, "duplicate", 1]);
  assert.match(json.detail ?? "", /the remote is asked whether the branch has moved/);
  await until("it is deployed", () => readDeployments(service.statePath).length === 3, longestWaitMs);
  const { trigger, commit } = await untilDeployment(service.statePath, 3, isDone);
  assert.deepEqual([trigger, commit], ["catch-up", x]);
  const [, , first = 0, second = 0] = asks();
  assert.ok(second - first >= 9_900, JSON.stringify(asks()));
});

test("a captured delivery deploys nothing and asks the remote once in 10 s at most", async (t) => {
  const { service, project, asks } = await startAsking(t);
  const captured = githubPush({ after: head(project) });
  await deployAll(service, [captured]);
  await deployAll(service, [githubPush({ after: project.commit() })]);
  const before = asks().length;
  for (let count = 0; count < 20; count += 1) {
    assert.equal((await deliver(service.url, captured)).json.status, "duplicate");
  }
  await until("it is asked", () => asks().length > before);
  assert.equal((await deliver(service.url, captured)).json.status, "duplicate");
  await until("it is asked again", () => asks().length > before + 1, longestWaitMs);
  const [first = 0, second = 0] = asks().slice(before);
  assert.ok(second - first >= 9_900, JSON.stringify(asks()));
  assert.equal(readDeployments(service.statePath).length, 2);
});

test("a captured delivery is not asked about while a newer push runs", async (t) => {
  const { service, project, asks } = await startAsking(t, `${patientScript}exit 0\n`);
  letGo(service.repoPath);
  const x = head(project);
  const captured = githubPush({ after: x });
  await deployAll(service, [captured]);
  rmSync(join(service.repoPath, "go"));
  const y = project.commit();
  await deliver(service.url, githubPush({ after: y }));
  await service.log.waitFor(({ event, deployment }) => event === "deployment.started" && deployment === 2);
  pushBack(project, x);
  const before = asks().length;
  await deliver(service.url, captured);
  const startMs = performance.now();
  await until("it would have been asked", () => performance.now() - startMs > 2_000);
  assert.equal(asks().length, before);
  pushBack(project, y);
  letGo(service.repoPath);
  await until("it is asked", () => asks().length > before);
  assert.deepEqual(
    readDeployments(service.statePath).map(({ commit }) => commit),
    [x, y],
  );
});

test("an old push that a second webhook reports late ends as skipped", async (t) => {
  const { service, project } = await startAsking(t);
  const a = head(project);
  const b = project.commit();
  await deployAll(service, [githubPush({ before: a, after: b })]);
  await deployAll(service, [githubPush({ before: b, after: project.commit() })]);
  const { status, json } = await deliver(service.url, githubPush({ before: a, after: b, mark: "second" }));
  assert.deepEqual([status, json.deployment?.id], [202, 3]);
  const { skipReason } = await untilDeployment(service.statePath, 3, ({ state }) => state === "skipped");
  assert.match(skipReason ?? "", /is live since deployment 2/);
});

test("a branch that really goes from X to Y to X to Y is deployed each time", async (t) => {
  const { service, project } = await startAsking(t);
  const x = head(project);
  const y = project.commit();
  await deployAll(service, [githubPush({ before: x, after: y })]);
  pushBack(project, x);
  await deployAll(service, [githubPush({ before: y, after: x })]);
  pushBack(project, y);
  await deliver(service.url, githubPush({ before: x, after: y }));
  await until("it is deployed", () => readDeployments(service.statePath).length === 3, longestWaitMs);
  assert.equal((await untilDeployment(service.statePath, 3, isDone)).commit, y);
});

const pullScript = "#!/bin/sh\ngit fetch --quiet origin && git checkout --quiet -B main origin/main\n";

/** A service whose `git` notes when the remote is asked, in milliseconds. */
async function startAsking(t: TestContext, script = pullScript) {
  const project = makeProject(t);
  project.script(script);
  const directory = temporaryDirectory(t);
  const notes = join(directory, "asked");
  writeScript(notes, "");
  writeScript(
    join(directory, "git"),
    `#!/bin/sh\ncase " $* " in *" ls-remote "*) date +%s%3N >>${notes} ;; esac\nPATH=\${PATH#*:} exec git "$@"\n`,
  );
  const env = { PATH: `${directory}:${process.env.PATH}` };
  const service = await startService(t, { repoPath: project.repoPath, env });
  const asks = () => readFileSync(notes, "utf8").split("\n").filter(Boolean).map(Number);
  return { service, project, asks };
}

async function deployAll(service: RunningService, deliveries: readonly Delivery[]): Promise<void> {
  for (const delivery of deliveries) {
    const { status, json } = await deliver(service.url, delivery);
    assert.equal(status, 202);
    await untilDeployment(service.statePath, json.deployment?.id ?? 0, isDone);
  }
}

function head({ remotePath }: Project): string {
  return git(remotePath, "rev-parse", "main");
}

/** Force-pushes `commit`, which the remote has, to its branch. */
function pushBack({ remotePath, repoPath }: Project, commit: string): void {
  git(repoPath, "fetch", "--quiet", remotePath, commit);
  git(repoPath, "push", "--quiet", "--force", remotePath, `${commit}:refs/heads/main`);
}

function isDone({ state }: { readonly state: string }): boolean {
  return state === "succeeded" || state === "failed";
}
