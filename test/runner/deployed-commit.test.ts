import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { endedByItself, noteVerified } from "../../src/runner/ending.ts";
import { makeRunDirectory, runDirectory } from "../../src/runner/run-directory.ts";
import { git, makeProject } from "../harness/project.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const succeeded = { state: "succeeded", exitCode: 0, problem: null } as const;

test("a run without a verified commit succeeds", async (t) => {
  assert.deepEqual(await endedByItself(makeRun(t), 0, []), succeeded);
});

test("a run succeeds with the verified commit, and fails with another one", async (t) => {
  const run = makeRun(t);
  noteVerified(run.directory, git(run.repoPath, "rev-parse", "HEAD"));
  assert.deepEqual(await endedByItself(run, 0, []), succeeded);
  git(run.repoPath, "commit", "--quiet", "--allow-empty", "--message", "Another");
  assert.equal((await endedByItself(run, 0, [])).problem?.code, "other_commit_deployed");
});

test("a run whose commit cannot be compared fails", async (t) => {
  const run = makeRun(t);
  mkdirSync(run.directory.verifiedPath);
  const { state, problem } = await endedByItself(run, 0, []);
  assert.equal(state, "failed");
  assert.match(problem?.detail ?? "", /the commit could not be compared \(EISDIR/);
});

function makeRun(t: TestContext) {
  const directory = runDirectory(temporaryDirectory(t), 1);
  makeRunDirectory(directory);
  return { directory, repoPath: makeProject(t).repoPath, environment: { PATH: process.env.PATH } };
}
