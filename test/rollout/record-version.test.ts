import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { commitOf } from "../../src/rollout/images.ts";
import { randomCommit } from "../harness/delivery.ts";
import { makeRepository } from "../harness/repository.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("images are named after the commit checked out, not after the one that was pushed", async (t) => {
  const { directory, write, commit } = makeRepository(t);
  const pushed = commit("What the push named");
  write("deploy/compose.yaml", "services: {}\n");
  const tip = commit("What the branch had reached when the script pulled");
  for (const project of [directory, join(directory, "deploy")])
    assert.equal(await commitOf(project, undefined, environment(pushed)), tip);
});

test("--commit is taken as it is, and DEPLOY_COMMIT only outside of git", async (t) => {
  const { directory, commit } = makeRepository(t);
  const tip = commit();
  const named = randomCommit();
  const pushed = randomCommit();
  const outside = temporaryDirectory(t);
  assert.equal(await commitOf(directory, named.toUpperCase(), environment(pushed)), named);
  assert.equal(await commitOf(directory, "not a commit", environment(pushed)), tip);
  assert.equal(await commitOf(outside, undefined, environment(pushed)), pushed);
  assert.match(await commitOf(outside, undefined, environment("--help")), /^\d{12}$/);
});

function environment(commit: string): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, DEPLOY_COMMIT: commit };
}
