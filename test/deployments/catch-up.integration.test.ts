import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Delivery, deliver, githubPush } from "../harness/delivery.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeProject, type Project } from "../harness/repository.ts";
import { type RunningService, startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("missed pushes are deployed, after a start and at each interval, once", async (t) => {
  const project = makeProject(t);
  const first = await startService(t, { repoPath: project.repoPath });
  await deployHead(first, project);
  await first.end();
  const missed = project.commit();
  const second = await first.again({ env: { CATCH_UP_INTERVAL: "1s" } });
  const { state, trigger, commit } = await untilDeployment(second.statePath, 2, isDone);
  assert.deepEqual([state, trigger, commit], ["succeeded", "catch-up", missed]);
  const after = project.commit();
  assert.equal((await untilDeployment(second.statePath, 3, isDone)).commit, after);
  await deliver(second.url, githubPush({ after }));
  assert.equal((await untilDeployment(second.statePath, 4, isDone)).state, "skipped");
});

test("a captured delivery deploys nothing and asks the remote once in 10 s at most", async (t) => {
  const project = makeProject(t);
  const directory = temporaryDirectory(t);
  const notes = join(directory, "asked");
  writeFileSync(notes, "");
  const note = `case " $* " in *" ls-remote "*) date +%s%3N >>${notes} ;; esac`;
  writeScript(join(directory, "git"), `#!/bin/sh\n${note}\nPATH=\${PATH#*:} exec git "$@"\n`);
  const asks = () => readFileSync(notes, "utf8").split("\n").filter(Boolean).map(Number);
  const env = { CATCH_UP_INTERVAL: "0", PATH: `${directory}:${process.env.PATH}` };
  const service = await startService(t, { repoPath: project.repoPath, env });
  const captured = await deployHead(service, project);
  project.commit();
  await deployHead(service, project, 2);
  assert.equal(asks().length, 2, "only pushes ask");
  const send = async () => {
    const { status, json } = await deliver(service.url, captured);
    // A service that is too busy to look has it on disk, and answers so.
    if (json.delivery === undefined) assert.deepEqual([status, json.status], [200, "duplicate"]);
    assert.equal(json.deployment?.id, 1);
  };
  for (let count = 0; count < 20; count += 1) await send();
  await until("it is asked", () => asks().length > 2);
  await send();
  await until("it is asked again", () => asks().length > 3);
  assert.equal(readDeployments(service.statePath).length, 2);
  const [, , first = 0, second = 0] = asks();
  assert.ok(second - first >= 9_900, JSON.stringify(asks()));
});

/** Delivers the push of the branch's head, which becomes deployment `id`, and waits for its end. @returns the delivery */
async function deployHead(service: RunningService, { remotePath }: Project, id = 1): Promise<Delivery> {
  const delivery = githubPush({ after: git(remotePath, "rev-parse", "main") });
  await deliver(service.url, delivery);
  await untilDeployment(service.statePath, id, isDone);
  return delivery;
}

function isDone({ state }: { readonly state: string }): boolean {
  return ["succeeded", "failed", "skipped"].includes(state);
}
