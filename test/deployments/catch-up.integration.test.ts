import assert from "node:assert/strict";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { untilDeployment } from "../harness/records.ts";
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
  const project = makeProject(t);
  const looks = await startLooking(t, project);
  await deployHead(looks.service, project);
  const warnings = () => looks.service.log.lines.filter(({ event }) => event === "catch_up.failed");
  renameSync(project.remotePath, `${project.remotePath}-away`);
  await until("it is logged", () => warnings().length === 1);
  await looks.until(3);
  assert.equal(warnings().length, 1);

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
  writeFileSync(counter, "");
  const count = () => readFileSync(counter, "utf8").length;
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
  return ["succeeded", "failed", "skipped"].includes(state);
}
