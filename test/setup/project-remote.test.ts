import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseRemoteUrl, readRemoteBranch, readRemoteUrl } from "../../src/setup/project.ts";
import { makeRepository } from "../harness/repository.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

for (const [url, hostname, path, origin] of [
  ["git@github.com:octo/app.git", "github.com", "octo/app", "https://github.com"],
  ["github.com:octo/app", "github.com", "octo/app", "https://github.com"],
  ["github.com-shop:octo/app.git", "github.com", "octo/app", "https://github.com"],
  ["ssh://git@ssh.github.com:443/octo/app.git", "github.com", "octo/app", "https://github.com"],
  ["https://github.com/octo/app.git/", "github.com", "octo/app", "https://github.com"],
  ["https://user:ghp_token@GitHub.com/octo/app", "github.com", "octo/app", "https://github.com"],
  ["ssh://git@git.example.org:2222/a/b/c.git", "git.example.org", "a/b/c", "https://git.example.org"],
  ["http://git.example.org:3000/a/b.git", "git.example.org", "a/b", "http://git.example.org:3000"],
  ["git://example.org/~mara/b.git", "example.org", "mara/b", "https://example.org"],
  ["git@[2001:db8::1]:a/b.git", "[2001:db8::1]", "a/b", "https://[2001:db8::1]"],
] as const) {
  test(`${url.replace("ghp_token", "…")} is ${path} at ${hostname}, without its credentials`, () => {
    const remote = parseRemoteUrl(url);
    assert.deepEqual([remote?.hostname, remote?.path, remote?.origin], [hostname, path, origin]);
    assert.doesNotMatch(JSON.stringify(remote), /ghp_token|user/);
  });
}

for (const url of [
  "/srv/git/app.git",
  "file:///srv/git/app.git",
  "../app.git",
  "",
  "git@github.com:",
  "https://",
]) {
  test(`${JSON.stringify(url)} is not at a git host`, () => assert.equal(parseRemoteUrl(url), null));
}

test("a remote is marked as ssh only if git uses ssh", () => {
  assert.equal(parseRemoteUrl("git@github.com:octo/app")?.isSsh, true);
  assert.equal(parseRemoteUrl("ssh://git@github.com/octo/app")?.isSsh, true);
  assert.equal(parseRemoteUrl("https://github.com/octo/app")?.isSsh, false);
  assert.equal(parseRemoteUrl("git://github.com/octo/app")?.isSsh, false);
});

test("the remote of a repository is origin, else the first one, else none", async (t) => {
  const { directory, git } = makeRepository(t);
  assert.equal(await readRemoteUrl(directory), null);
  git("remote", "add", "backup", "git@example.org:a/b.git");
  assert.equal(await readRemoteUrl(directory), "git@example.org:a/b.git");
  git("remote", "add", "origin", "git@github.com:octo/app.git");
  assert.equal(await readRemoteUrl(directory), "git@github.com:octo/app.git");
  assert.equal(await readRemoteUrl(temporaryDirectory(t)), null);
});

test("the branch to deploy is the one that the HEAD of the remote names", async (t) => {
  const remote = makeRepository(t, "remote");
  remote.commit();
  const { directory, git } = makeRepository(t);
  git("remote", "add", "origin", remote.directory);
  assert.equal(await readRemoteBranch(directory), "main");
  remote.git("switch", "--quiet", "--create", "x/HEAD");
  assert.equal(await readRemoteBranch(directory), null);
  remote.git("switch", "--quiet", "--create", "master");
  assert.equal(await readRemoteBranch(directory), "master");
});

test("if the remote does not answer, its branch is the one that git clone found", async (t) => {
  const remote = makeRepository(t, "remote");
  remote.git("switch", "--quiet", "--create", "master");
  remote.commit();
  const directory = join(temporaryDirectory(t), "clone");
  remote.git("clone", "--quiet", remote.directory, directory);
  rmSync(remote.directory, { recursive: true });
  assert.equal(await readRemoteBranch(directory), "master");
});
