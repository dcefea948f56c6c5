import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Delivery, deliver, githubPush } from "../harness/delivery.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeProject, type Project } from "../harness/repository.ts";
import { type RunningService, startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** A real remote and a service that never looks by itself: what it asks, it asks because of a push. */

const longestWaitMs = 60_000;

test("a captured delivery deploys nothing and asks the remote once in 10 s at most", async (t) => {
  const { service, project, asks } = await startAsking(t);
  const x = head(project);
  const captured = githubPush({ after: x });
  await deployAll(service, [captured]);
  await deployAll(service, [githubPush({ after: project.commit() })]);
  for (let count = 0; count < 20; count += 1) {
    const { status, json } = await deliver(service.url, captured);
    assert.deepEqual([status, json.status, json.deployment?.id], [200, "duplicate", 1]);
  }
  await until("it is asked", () => asks().length > 2);
  pushBack(project, x);
  assert.equal((await deliver(service.url, captured)).json.status, "duplicate");
  await until("the remote has said so once", () => asks().length > 3, longestWaitMs);
  assert.equal(readDeployments(service.statePath).length, 2);
  await until("it is deployed", () => readDeployments(service.statePath).length === 3, longestWaitMs);
  const { trigger, commit } = await untilDeployment(service.statePath, 3, isDone);
  assert.deepEqual([trigger, commit], ["catch-up", x]);
  const [, , first = 0, second = 0, third = 0] = asks();
  assert.ok(second - first >= 9_900 && third - second >= 9_900, JSON.stringify(asks()));
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
