import assert from "node:assert/strict";
import { lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deployKeyPath, neverAsk, runGit } from "../../src/platform/git.ts";
import { hasSucceeded } from "../../src/platform/run-command.ts";
import { childEnvironment } from "../../src/runner/script.ts";
import { clone, hasLostDeployKey, makeDeployKey, moveDeployKey } from "../../src/setup/clone.ts";
import { git, makeRepository } from "../harness/repository.ts";
import { type Scope, temporaryDirectory, writeScript } from "../harness/temporary.ts";

/** Stands for ssh: writes down how it was called, and runs the command on this machine. */
function makeSsh(scope: Scope) {
  const directory = temporaryDirectory(scope);
  const log = join(directory, "log");
  writeFileSync(log, "");
  writeScript(
    join(directory, "ssh"),
    `#!/bin/sh\necho "$*" >>${log}\nfor last; do :; done\nexec sh -c "$last"\n`,
  );
  const env = { PATH: `${directory}:${process.env.PATH}`, HOME: directory };
  return { env, calls: () => readFileSync(log, "utf8").split("\n").filter(Boolean) };
}

test("the deploy key reads its repository, and submodules are read with their owner's keys", async (t) => {
  const ssh = makeSsh(t);
  const [lib, shop] = [makeRepository(t, "lib"), makeRepository(t)];
  lib.commit();
  shop.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.directory, "lib");
  shop.git("config", "--file", ".gitmodules", "submodule.lib.url", `ssh://git@host${lib.directory}`);
  shop.commit();
  const checkout = join(temporaryDirectory(t), "shop");
  git("/", "clone", "--quiet", shop.directory, checkout);
  git(checkout, "remote", "set-url", "origin", `ssh://git@host${shop.directory}`);
  await makeDeployKey(checkout, "Hotpush");
  const env = childEnvironment({ env: ssh.env, deployEnv: [], repoPath: checkout });
  for (const args of [["fetch"], ["submodule", "update", "--init"]])
    assert.ok(hasSucceeded(await runGit(checkout, args, { env })), args.join(" "));
  const withKey = ssh
    .calls()
    .map((call) => [call.includes(deployKeyPath(checkout)), /\w+'?$/.exec(call)?.[0]]);
  assert.deepEqual(withKey, [
    [true, "shop'"],
    [false, "lib'"],
  ]);
});

test("git is given an ssh command unless the settings of the repository name one that has the deploy key", (t) => {
  const { directory, git: own } = makeRepository(t);
  const given = () => neverAsk(directory).GIT_SSH_COMMAND;
  assert.equal(given(), "ssh -o BatchMode=yes");
  own("config", "core.sshCommand", "ssh -i ~/.ssh/shop");
  assert.equal(given(), undefined);
  // Without it, a checkout whose settings are another's would lose its key.
  writeFileSync(deployKeyPath(directory), "");
  assert.ok(given()?.includes(deployKeyPath(directory)));
  own("config", "core.sshCommand", `ssh -i '${deployKeyPath(directory)}'`);
  assert.equal(given(), undefined);
});

test("a deploy key stays in .git if its owner's home is in the checkout, or cannot be in run", async (t) => {
  const { HOME } = process.env;
  t.after(() => {
    process.env.HOME = HOME;
  });
  const directory = temporaryDirectory(t);
  const dotfiles = join(directory, "home");
  mkdirSync(dotfiles);
  for (const home of ["", "nested", "/", "/run/user/1000", dotfiles]) {
    const repository = makeRepository(t);
    if (home === dotfiles) symlinkSync(repository.directory, join(dotfiles, ".ssh"));
    process.env.HOME = home.startsWith("/") ? home : join(repository.directory, home);
    await makeDeployKey(repository.directory, "Hotpush");
    await moveDeployKey(repository.directory);
    assert.ok(lstatSync(deployKeyPath(repository.directory)).isFile(), home);
    assert.equal(repository.git("status", "--porcelain", "--untracked-files=all"), "", home);
    assert.equal(await hasLostDeployKey(repository.directory), false);
  }
});

test("a deploy key is lost if its link leads to nothing that the owner of the checkout can read", async (t) => {
  const { directory } = makeRepository(t);
  assert.equal(await hasLostDeployKey(directory), false, "there is none");
  symlinkSync(join(temporaryDirectory(t), "key"), deployKeyPath(directory));
  assert.equal(await hasLostDeployKey(directory), true);
  await makeDeployKey(directory, "Hotpush");
  assert.equal(await hasLostDeployKey(directory), false);
});

for (const format of ["sha256", "sha1"])
  for (const isRepeated of [false, true])
    test(`a repository of ${format} is cloned${isRepeated ? ", where a first attempt took the other format" : ""}`, async (t) => {
      const remote = temporaryDirectory(t);
      git(remote, "init", "--quiet", "--initial-branch=main", `--object-format=${format}`);
      git(remote, "commit", "--quiet", "--allow-empty", "--message", "First");
      const directory = join(temporaryDirectory(t), "shop");
      mkdirSync(directory);
      const other = format === "sha256" ? "sha1" : "sha256";
      if (isRepeated) git(directory, "init", "--quiet", `--object-format=${other}`);
      const screen = { readToken: async () => null, showKey() {}, say() {} };
      const options = { remote, directory, url: new URL("http://shop.test/webhook"), repository: null };
      assert.equal(await clone(options, screen), 0);
      assert.equal(git(directory, "rev-parse", "HEAD"), git(remote, "rev-parse", "HEAD"));
      git(directory, "fsck", "--strict");
    });

/** Clones a remote with these branches, whose HEAD names another one. */
async function cloneOf(t: TestContext, ...names: readonly string[]): Promise<string> {
  const remote = makeRepository(t, "remote");
  remote.commit();
  remote.git("switch", "--quiet", "--detach");
  for (const name of names) remote.git("branch", "--force", name);
  if (!names.includes("main")) remote.git("branch", "--delete", "main");
  remote.git("symbolic-ref", "HEAD", "refs/heads/nowhere");
  const directory = join(temporaryDirectory(t), "clone");
  const screen = { readToken: async () => null, showKey: () => {}, say: () => {} };
  const url = new URL("https://shop.example.org/webhook");
  await clone({ remote: remote.directory, directory, url, repository: null }, screen);
  return git(directory, "branch", "--show-current");
}

test("a remote without a default branch is cloned at the only one of main and master, else its branches are named", async (t) => {
  assert.equal(await cloneOf(t, "main", "next"), "main");
  assert.equal(await cloneOf(t, "master"), "master");
  for (const [names, reason] of [
    [["main", "master"], /none of main, master\. Choose/],
    [["next", "trunk"], /none of next, trunk\. Choose/],
  ] as const)
    await assert.rejects(cloneOf(t, ...names), reason);
});
