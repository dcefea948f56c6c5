import assert from "node:assert/strict";
import { execFile } from "node:child_process";

import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { rolloutState } from "../../src/rollout/lock.ts";
import { type Version, writeVersions } from "../../src/rollout/versions.ts";
import { deliver, githubPush, randomCommit } from "../harness/delivery.ts";
import { noServer } from "../harness/hotpush.ts";
import { type RunningService, startService } from "../harness/service.ts";

const launcher = fileURLToPath(new URL("../../bin/hotpush", import.meta.url));

test("a roll back is a deployment of its own, which does not run deploy.sh", async (t) => {
  const { service, commits } = await deployedTwice(t);
  const { stdout, code } = await rollback(service);
  assert.match(stdout, new RegExp(`^Deployment 3 goes back to ${commits[0]}\\.`));
  // Without a compose file here, the roll-out fails: this proves that it ran in place of deploy.sh.
  assert.match(stdout, /The compose file in .* cannot be read/);
  assert.match(stdout, /\nDeployment 3 failed after [^\n]+\.\n/);
  assert.equal(code, 1);
  assert.ok(!service.log.outputOf(3).some((line) => line.startsWith("deployed")));
});

test("rollback takes the number of a deployment, or a commit", async (t) => {
  const { service, commits } = await deployedTwice(t);
  const [first = ""] = commits;
  for (const wanted of ["1", first.slice(0, 9)]) {
    const { stdout, code } = await rollback(service, "--detach", wanted);
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`goes back to ${first}\\.\n$`));
  }
});

test("within a deploy script a roll back runs when that script has ended", async (t) => {
  const { service } = await deployedTwice(t, "#!/bin/sh\n[ $DEPLOY_ID != 2 ] || hotpush rollback\n");
  const ending = await service.log.waitForEnding(3);
  assert.equal(ending.event, "deployment.failed");
  assert.ok(service.log.outputOf(2).some((line) => line.startsWith("Deployment 3 goes back to")));
});

test("an unknown version is refused, and nothing is recorded", async (t) => {
  const { service } = await deployedTwice(t);
  const { stderr, code } = await rollback(service, "99");
  assert.equal(code, 1);
  assert.match(
    stderr,
    /no good version of the commit 99 to go back to\. Good versions, oldest first: [0-9a-f]{12}, /,
  );
  const { json } = await deliver(service.url, githubPush());
  assert.equal(json.deployment?.id, 3);
});

/** Two deployments that succeeded, as two versions that a roll-out left. */
async function deployedTwice(t: TestContext, script?: string) {
  const commits = [randomCommit(), randomCommit()];
  const service = await startService(t, script === undefined ? {} : { script });
  const { versionsPath } = rolloutState(service.statePath, service.repoPath);
  await writeVersions(versionsPath, commits.map(version));
  for (const [index, after] of commits.entries()) {
    await deliver(service.url, githubPush({ after }));
    await service.log.waitForEnding(index + 1);
  }
  return { service, commits };
}

function version(commit: string): Version {
  const image = { image: "app", id: `sha256:${commit}`, tag: `app:${commit.slice(0, 12)}` };
  return { commit, finishedAt: new Date().toISOString(), images: { app: image } };
}

function rollback({ statePath, repoPath }: RunningService, ...args: readonly string[]) {
  return run(statePath, repoPath, args);
}

function run(statePath: string, repoPath: string, args: readonly string[]) {
  const env = {
    ...noServer,
    PATH: process.env.PATH,
    HOME: "/",
    STATE_PATH: statePath,
    REPO_PATH: repoPath,
  };
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const options = { env, cwd: join(statePath, "..") };
    execFile(launcher, ["rollback", ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}
