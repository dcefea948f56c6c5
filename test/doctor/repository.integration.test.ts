import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { git, makePlace, type Place, probe, setSettings, testBroken } from "../harness/doctor.ts";
import { becomeNobody, needs } from "../harness/requirements.ts";
import { writeScript } from "../harness/temporary.ts";

testBroken([
  {
    name: "another user has it for itself",
    check: "repository",
    options: needs("root", "otherUser"),
    run: ({ root }) => ({ wrapper: becomeNobody, directory: root }),
    breakIt(place) {
      openTo(place);
      execFileSync("cp", [place.envFile, `${place.root}/.env`]);
      chmodSync(place.repoPath, 0o700);
    },
  },
  {
    name: "another user owns it",
    check: "repository",
    options: needs("root"),
    run: ({ repoPath }) => ({ env: { REPO_PATH: repoPath } }),
    breakIt: ({ repoPath }) => void execFileSync("chown", ["-R", "65534", repoPath]),
  },
  {
    name: "submodules that were never checked out, and one at another commit",
    check: "content",
    severity: "warning",
    // Git allows no local path as the address of a submodule, unless its user says so.
    breakIt(place) {
      writeFileSync(join(place.home, ".gitconfig"), '[protocol "file"]\n\tallow = always\n');
      const add = ["submodule", "--quiet", "add", place.remotePath];
      git(place, ...add, "never");
      git(place, ...add, "moved");
      git(place, "commit", "--quiet", "--message", "Submodules");
      git(place, "-C", "moved", "commit", "--quiet", "--allow-empty", "--message", "Another");
      git(place, "submodule", "--quiet", "deinit", "never");
    },
  },
  {
    name: "files in Git LFS, without git-lfs",
    check: "content",
    run: ({ root }) => ({ env: { PATH: `${root}:${process.env.PATH}` } }),
    breakIt(place) {
      writeFileSync(join(place.repoPath, ".gitattributes"), "*.bin filter=lfs -text\n");
      writeFileSync(join(place.repoPath, "model.bin"), "version https://git-lfs.github.com/spec/v1\n");
      git(place, "add", "--all");
      writeFileSync(join(place.root, "git-lfs"), "#!/bin/sh\nexit 127\n", { mode: 0o755 });
    },
    fix({ root }, { command }) {
      assert.equal(command, "apt-get install -y git-lfs");
      writeFileSync(join(root, "git-lfs"), "#!/bin/sh\n");
    },
  },
  {
    name: "a remote without main and master",
    check: "branch",
    breakIt(place) {
      git(place, "push", "--quiet", "origin", "main:trunk");
      execFileSync("git", ["-C", place.remotePath, "symbolic-ref", "HEAD", "refs/heads/trunk"]);
      git(place, "push", "--quiet", "origin", ":main");
    },
  },
  {
    name: "BRANCH is not set",
    check: "branch",
    severity: "warning",
    breakIt: (place) => setSettings(place, { BRANCH: "" }),
  },
  {
    name: "BRANCH names a branch that the remote does not have",
    check: "branch",
    breakIt: (place) => setSettings(place, { BRANCH: "master" }),
  },
]);

test("root runs no program that a .env of another user names", needs("root"), async (t) => {
  const place = makePlace(t);
  const spied = join(place.root, "spied");
  writeScript(join(place.root, "spy"), `#!/bin/sh\ntouch ${spied}\n`);
  git(place, "remote", "set-url", "origin", "ssh://git@127.0.0.1:1/octo/shop.git");
  setSettings(place, { GIT_SSH_COMMAND: join(place.root, "spy") });
  for (const owner of [0, 65_534]) {
    rmSync(spied, { force: true });
    chownSync(place.envFile, owner, owner);
    await probe(place, "remote", { env: { REPO_PATH: place.repoPath } });
    assert.equal(existsSync(spied), owner === 0);
  }
});

function openTo({ root, home, temporaryPath, envFile }: Place): void {
  for (const path of [join(root, ".."), root, home, temporaryPath]) chmodSync(path, 0o777);
  chmodSync(envFile, 0o644);
}
