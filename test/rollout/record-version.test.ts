import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { commitAt, commitOf, timeAsCommit } from "../../src/rollout/record-version.ts";
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
  const [named, pushed] = [randomCommit(), randomCommit()];
  const outside = temporaryDirectory(t);
  assert.equal(await commitOf(directory, named.toUpperCase(), environment(pushed)), named);
  assert.equal(await commitOf(directory, "not a commit", environment(pushed)), tip);
  assert.equal(await commitOf(outside, undefined, environment(pushed)), pushed);
  assert.match(await commitOf(outside, undefined, environment("--help")), /^\d{12}$/);
});

function environment(commit: string): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, DEPLOY_COMMIT: commit };
}

const env = { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };

/** A repository in which HEAD moved at seconds 1000, 2000 and 3000: two commits, then back to the first. */
function makeReflog(t: TestContext) {
  const directory = temporaryDirectory(t);
  const ada = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
  const git = (atS: number, ...args: readonly string[]) =>
    execFileSync("git", ["-C", directory, ...ada, ...args], {
      env: { ...env, GIT_COMMITTER_DATE: `@${atS} +0000`, GIT_AUTHOR_DATE: `@${atS} +0000` },
    })
      .toString()
      .trim();
  git(0, "init", "--quiet");
  git(1_000, "commit", "--quiet", "--allow-empty", "--message", "The first");
  const first = git(0, "rev-parse", "HEAD");
  git(2_000, "commit", "--quiet", "--allow-empty", "--message", "The second");
  const second = git(0, "rev-parse", "HEAD");
  git(3_000, "checkout", "--quiet", "--force", "-B", "main", first);
  return { directory, first, second };
}

test("the commit at a time is the one checked out then, not now", async (t) => {
  const { directory, first, second } = makeReflog(t);
  assert.equal(await commitAt(directory, 1_999_999, env), first);
  assert.equal(await commitAt(directory, 2_000_500, env), second);
  assert.equal(await commitAt(directory, 9_000_000, env), first);
});

test("before the reflog begins, and outside of git, no commit is known", async (t) => {
  const { directory } = makeReflog(t);
  assert.equal(await commitAt(directory, 999_999, env), null);
  assert.equal(await commitAt(temporaryDirectory(t), 9_000_000, env), null);
});

test("a moment is twelve digits, as the shortest commit", () => {
  assert.equal(timeAsCommit(Date.UTC(2026, 10, 22, 14, 36, 57)), "261122143657");
});
