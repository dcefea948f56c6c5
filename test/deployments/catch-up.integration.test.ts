import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
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
  const startMs = performance.now();
  const second = await first.again({ env: { CATCH_UP_INTERVAL: "24h" } });
  const { trigger, commit } = await untilDeployment(
    second.statePath,
    2,
    ({ state }) => state === "succeeded",
  );
  t.diagnostic(`deployed ${(performance.now() - startMs).toFixed()} ms after the start`);
  assert.deepEqual([trigger, commit], ["catch-up", missed]);
});

test("a push whose delivery never comes is found at the next look and deployed once", async (t) => {
  const project = makeProject(t);
  const service = await startService(t, { repoPath: project.repoPath, env: everySecond });
  await deployHead(service, project);
  const missed = project.commit();
  assert.equal((await untilDeployment(service.statePath, 2, isDone)).commit, missed);
  const after = project.commit();
  assert.equal((await untilDeployment(service.statePath, 3, isDone)).commit, after);
  assert.equal(readDeployments(service.statePath).length, 3);
});

test("a delivery that comes after catch-up is skipped, because the head is live", async (t) => {
  const project = makeProject(t);
  const service = await startService(t, { repoPath: project.repoPath, env: everySecond });
  await deployHead(service, project);
  const after = project.commit();
  await untilDeployment(service.statePath, 2, isDone);
  const reply = await deliver(service.url, githubPush({ after }));
  assert.equal(reply.json.deployment?.id, 3);
  const skipped = await untilDeployment(service.statePath, 3, ({ state }) => state === "skipped");
  assert.match(skipped.skipReason ?? "", /is live since deployment 2/);
});

test("catch-up does not ask before a first deployment, which a person chooses", async (t) => {
  const project = makeProject(t);
  const looks = await startLooking(t, project);
  project.script("#!/bin/sh\nexit 3\n");
  await deliver(looks.service.url, githubPush({ after: project.commit() }));
  assert.equal((await untilDeployment(looks.service.statePath, 1, isDone)).state, "failed");
  const startMs = performance.now();
  await until("two intervals are over", () => performance.now() - startMs > 2_100);
  assert.equal(looks.count(), 1, "only the push has asked");
  assert.equal(readDeployments(looks.service.statePath).length, 1);
});

test("a commit whose deployment failed is not tried again", async (t) => {
  const project = makeProject(t);
  const looks = await startLooking(t, project);
  await deployHead(looks.service, project);
  project.script("#!/bin/sh\nexit 3\n");
  project.commit();
  assert.equal((await untilDeployment(looks.service.statePath, 2, isDone)).state, "failed");
  await looks.until(3);
  assert.equal(readDeployments(looks.service.statePath).length, 2);
  project.script("#!/bin/sh\nexit 0\n");
  project.commit();
  assert.equal((await untilDeployment(looks.service.statePath, 3, isDone)).state, "succeeded");
});

test("a remote that does not answer is logged once, and again after it has answered", async (t) => {
  const project = makeProject(t);
  const looks = await startLooking(t, project);
  await deployHead(looks.service, project);
  const warnings = () => looks.service.log.lines.filter(({ event }) => event === "catch_up.failed");
  renameSync(project.remotePath, `${project.remotePath}-away`);
  await until("it is logged", () => warnings().length === 1);
  await looks.until(3);
  assert.equal(warnings().length, 1);
  assert.match(
    warnings()[0]?.msg ?? "",
    /^Missed pushes cannot be found at the moment: git ls-remote failed in \S+: /,
  );

  renameSync(`${project.remotePath}-away`, project.remotePath);
  const missed = project.commit();
  assert.equal((await untilDeployment(looks.service.statePath, 2, isDone)).commit, missed);
  renameSync(project.remotePath, `${project.remotePath}-away`);
  await until("it is logged again", () => warnings().length === 2);
});

test("with an interval of 0 only pushes ask", async (t) => {
  const project = makeProject(t);
  const looks = await startLooking(t, project, "0");
  await deployHead(looks.service, project);
  await deliver(looks.service.url, githubPush({ after: project.commit() }));
  await untilDeployment(looks.service.statePath, 2, isDone);
  assert.equal(looks.count(), 2);
});

async function deployHead(service: RunningService, { remotePath }: Project): Promise<void> {
  const after = git(remotePath, "rev-parse", "main");
  await deliver(service.url, githubPush({ after }));
  await untilDeployment(service.statePath, 1, isDone);
}

/** A service whose `git` counts how often the remote is asked. */
async function startLooking(t: TestContext, project: Project, interval = "1s") {
  const directory = temporaryDirectory(t);
  const counter = join(directory, "looks");
  writeScript(
    join(directory, "git"),
    `#!/bin/sh\ncase " $* " in *" ls-remote "*) echo >>${counter} ;; esac\nPATH=\${PATH#*:} exec git "$@"\n`,
  );
  const service = await startService(t, {
    repoPath: project.repoPath,
    env: { CATCH_UP_INTERVAL: interval, PATH: `${directory}:${process.env.PATH}` },
  });
  const count = () =>
    Number(execFileSync("sh", ["-c", `cat ${counter} 2>/dev/null | wc -l`], { encoding: "utf8" }));
  return {
    service,
    count,
    /** Waits until the remote was asked so many times more. */
    async until(more: number) {
      const start = count();
      await until(`${more} looks`, () => count() >= start + more);
    },
  };
}

function isDone({ state }: { readonly state: string }): boolean {
  return state === "succeeded" || state === "failed";
}
