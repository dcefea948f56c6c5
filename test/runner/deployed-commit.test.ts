import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { endedByItself } from "../../src/runner/ending.ts";
import { makeRunDirectory, runDirectory } from "../../src/runner/run-directory.ts";
import { noteTip } from "../../src/runner/tip/check-deployed.ts";
import { git, makeProject } from "../harness/project.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const succeeded = { state: "succeeded", exitCode: 0, problem: null } as const;

test("a run without a verified commit succeeds", async (t) => {
  assert.deepEqual(await endedByItself(makeRun(t), 0, []), succeeded);
});

test("a run succeeds with the verified commit, and fails with another one", async (t) => {
  const run = makeRun(t);
  noteTip(run.directory, tipOf(run, { isSigned: true }));
  assert.deepEqual(await endedByItself(run, 0, []), succeeded);
  git(run.repoPath, "commit", "--quiet", "--allow-empty", "--message", "Another");
  assert.equal((await endedByItself(run, 0, [])).problem?.code, "other_commit_deployed");
});

test("a run without signatures may end at any commit of the branch, and at no other", async (t) => {
  const run = makeRun(t);
  const commit = (message = "Another") =>
    git(run.repoPath, "commit", "--quiet", "--allow-empty", "--message", message);
  commit();
  noteTip(run.directory, tipOf(run, { isSigned: false }));
  for (const position of ["HEAD", "HEAD~1"]) {
    git(run.repoPath, "checkout", "--quiet", "--detach", position);
    assert.deepEqual(await endedByItself(run, 0, []), succeeded, position);
  }
  git(run.repoPath, "checkout", "--quiet", "main");
  commit("A newer one");
  assert.deepEqual(await endedByItself(run, 0, []), succeeded, "a newer one");
  git(run.repoPath, "checkout", "--quiet", "--detach", "HEAD~2");
  commit("Beside the branch");
  const { problem } = await endedByItself(run, 0, []);
  assert.equal(problem?.code, "other_commit_deployed");
  assert.match(problem?.detail ?? "", /is checked out, which is not in the branch at/);
});

test("a run whose commit cannot be compared fails", async (t) => {
  const run = makeRun(t);
  mkdirSync(run.directory.verifiedPath);
  const { state, problem } = await endedByItself(run, 0, []);
  assert.equal(state, "failed");
  assert.match(problem?.detail ?? "", /the commit could not be compared \(EISDIR/);
});

function tipOf({ repoPath }: { readonly repoPath: string }, { isSigned }: { readonly isSigned: boolean }) {
  return { kind: "exact", commit: git(repoPath, "rev-parse", "HEAD"), isSigned } as const;
}

function makeRun(t: TestContext) {
  const directory = runDirectory(temporaryDirectory(t), 1);
  makeRunDirectory(directory);
  return {
    directory,
    repoPath: makeProject(t).repoPath,
    user: null,
    environment: { PATH: process.env.PATH },
  };
}
