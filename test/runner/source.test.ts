import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deployment } from "../../src/deployments/deployment.ts";
import { readCommit } from "../../src/platform/git.ts";
import { readSource } from "../../src/runner/source.ts";
import { randomCommit } from "../harness/delivery.ts";
import { makeRepository, type TestRepository } from "../harness/repository.ts";
import { deploymentWith } from "../harness/runs.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("a commit that was passed by then is recorded as the newer one that is checked out", async (t) => {
  const repository = makeRepository(t);
  const pushed = repository.commit("What was pushed");
  const tip = repository.commit("What main was by then\n\nWith a body.");
  const expected = { checkedOutCommit: tip, subject: "What main was by then", author: "Mara Köhler" };
  for (const state of ["running", "succeeded", "failed"] as const)
    assert.deepEqual(await read(repository, { commit: pushed }, state), expected);
});

test("what was checked out before the pull is the work of another run", async (t) => {
  const repository = makeRepository(t);
  const before = repository.commit();
  for (const state of ["running", "failed", "timed_out", "cancelled"] as const)
    assert.equal(await read(repository, { commit: randomCommit() }, state), null);
  const succeeded = await read(repository, { commit: randomCommit() }, "succeeded");
  assert.equal(succeeded?.checkedOutCommit, before);
});

test("a roll back names the commit that it goes back to, and no commit checked out", async (t) => {
  const repository = makeRepository(t);
  const commit = repository.commit("The good one");
  repository.commit("The bad one");
  const back = { commit, trigger: "rollback" } as const;
  const expected = { checkedOutCommit: null, subject: "The good one", author: "Mara Köhler" };
  assert.deepEqual(await read(repository, back, "succeeded"), expected);
  assert.equal(await read(repository, { ...back, commit: "--output=/tmp/x" }, "succeeded"), null);
  assert.equal(await read(repository, { ...back, commit: randomCommit() }, "succeeded"), null);
});

test("subject and author cannot steer a terminal, and are short", async (t) => {
  const repository = makeRepository(t);
  const hostile = `\u001b]0;owned\u0007\u001b[31mred\u202e\r\u2028${"x".repeat(500)}`;
  repository.git("config", "i18n.logOutputEncoding", "UTF-16");
  repository.git("config", "log.showSignature", "true");
  const author = "--author=Eve\u001b[2J\r\u202eEvil <eve@example.org>";
  repository.git("commit", "--quiet", "--allow-empty", author, "--message", hostile);
  const { subject = "", author: name } = (await read(repository, {}, "succeeded")) ?? {};
  assert.match(subject ?? "", /^red {2,3}x{100,}…$/);
  assert.ok((subject ?? "").length <= 200);
  assert.equal(name, "Eve  Evil");
});

test("a subject of megabytes is cut off by git", async (t) => {
  const { directory, git, write } = makeRepository(t);
  write("message", "x".repeat(4 * 1024 ** 2));
  git("commit", "--quiet", "--allow-empty", "--file", `${directory}/message`);
  const commit = await readCommit(directory, "HEAD", { PATH: process.env.PATH });
  assert.match(commit?.subject ?? "", /^x{900,998}\.\.$/);
});

test("outside of git, and with no git at all, nothing is known", async (t) => {
  const directory = temporaryDirectory(t);
  assert.equal(await read({ directory }, {}, "succeeded"), null);
  assert.equal(await read(makeRepository(t), {}, "succeeded", { PATH: "/nowhere" }), null);
});

async function read(
  { directory }: Pick<TestRepository, "directory">,
  fields: Partial<Deployment>,
  state: Deployment["state"],
  env: NodeJS.ProcessEnv = { PATH: process.env.PATH },
) {
  const options = { env, deployEnv: [], repoPath: directory };
  return await readSource(options, { ...deploymentWith(1), ...fields }, state);
}
