import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type CliEnding, runCli } from "../harness/cli.ts";
import { testSecret } from "../harness/delivery.ts";
import { makeRepository } from "../harness/repository.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { makeSetting } from "./send-setting.ts";

test("the secret comes from .env here or in the repository's root, or from a file", async (t) => {
  const { repository, service } = await makeSetting(t);
  const sendFrom = (cwd: string, env = {}) =>
    runCli(["send", "--dry-run"], { cwd, env: { WEBHOOK_PORT: String(service.port), ...env } });
  repository.write("deep/down/file", "");
  const deep = join(repository.directory, "deep/down");
  assert.match((await sendFrom(deep)).stderr, /There is no WEBHOOK_SECRET/);
  repository.write(".env", `WEBHOOK_SECRET=${testSecret}\n`);
  assert.equal((await sendFrom(repository.directory)).code, 0);
  assert.equal((await sendFrom(deep)).code, 0);
  const file = join(temporaryDirectory(t), "secret");
  writeFileSync(file, `${testSecret}\n`);
  repository.write(".env", "");
  assert.equal((await sendFrom(deep, { WEBHOOK_SECRET_FILE: file })).code, 0);
  assert.match((await sendFrom(deep, { WEBHOOK_SECRET: "change-me" })).stderr, /still the placeholder/);
});

test("HOTPUSH_GIT_HOST decides the name of the repository in the payload", async (t) => {
  const { repository, service } = await makeSetting(t);
  repository.git("remote", "set-url", "origin", "https://git.corp.example/code/octo/shop.git");
  repository.write(".env", `WEBHOOK_SECRET=${testSecret}\nHOTPUSH_GIT_HOST=gitea\n`);
  const env = { WEBHOOK_PORT: String(service.port) };
  const { stdout } = await runCli(["send", "--dry-run"], { cwd: repository.directory, env });
  assert.match(stdout.replace(/\s+/g, " "), / to refs\/heads\/main of octo\/shop\./);
});

test("send takes the head of main or master, whatever is checked out", async (t) => {
  const { repository, send } = await makeSetting(t);
  const { git, commit } = repository;
  const main = git("rev-parse", "HEAD");
  git("switch", "--quiet", "--create", "next");
  commit("Not yet");
  assert.equal(await sentCommit(send), main);
  git("checkout", "--quiet", "--detach");
  assert.equal(await sentCommit(send), main);
  git("branch", "--move", "main", "master");
  assert.equal(await sentCommit(send), main);
  git("branch", "--move", "master", "trunk");
  const { code, stderr } = await send("--dry-run");
  assert.equal(code, 1);
  assert.match(stderr, /has no branch main or master with a commit/);
});

test("send takes the branch that is checked out, and the remote's if there is no local one", async (t) => {
  const { repository, send } = await makeSetting(t);
  const { git, commit } = repository;
  const main = git("rev-parse", "HEAD");
  git("switch", "--quiet", "--create", "master");
  const master = commit("On master");
  assert.equal(await sentCommit(send), master);
  git("switch", "--quiet", "--create", "next");
  assert.equal(await sentCommit(send), main);
  git("update-ref", "refs/remotes/origin/master", master);
  git("branch", "--delete", "--force", "main", "master");
  assert.equal(await sentCommit(send), master);
});

test("with BRANCH, send takes the head of that branch", async (t) => {
  const { repository, service } = await makeSetting(t);
  const { git, commit } = repository;
  git("switch", "--quiet", "--create", "master");
  const master = commit("On master");
  git("switch", "--quiet", "main");
  const settings = { WEBHOOK_SECRET: testSecret, WEBHOOK_PORT: String(service.port), BRANCH: "master" };
  const { stdout } = await runCli(["send", "--dry-run"], { cwd: repository.directory, env: settings });
  assert.ok(stdout.includes(`would deploy ${master.slice(0, 7)}`), stdout);
});

test("send explains a repository without a commit, and a missing repository", async (t) => {
  const { service } = await makeSetting(t);
  const env = { WEBHOOK_SECRET: testSecret, WEBHOOK_PORT: String(service.port) };
  const empty = makeRepository(t).directory;
  assert.match(
    (await runCli(["send"], { cwd: empty, env })).stderr,
    /no branch main or master with a commit/,
  );
  const nothing = temporaryDirectory(t);
  assert.match((await runCli(["send"], { cwd: nothing, env })).stderr, /is not a git repository/);
});

test("without a remote the directory gives the name, even with spaces in it", async (t) => {
  const repository = makeRepository(t, "my shop");
  repository.commit();
  const service = await startService(t);
  const env = { WEBHOOK_SECRET: testSecret, WEBHOOK_PORT: String(service.port) };
  const { stdout, code } = await runCli(["send", "--dry-run"], { cwd: repository.directory, env });
  assert.equal(code, 0);
  assert.match(stdout, /of local\/my shop\./);
});

async function sentCommit(send: (...args: readonly string[]) => Promise<CliEnding>): Promise<string> {
  const { stdout } = await send("--dry-run", "--json");
  return (JSON.parse(stdout) as { commit: string }).commit;
}
