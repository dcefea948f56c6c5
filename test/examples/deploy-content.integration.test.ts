import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { git } from "../harness/repository.ts";
import { needs } from "../harness/requirements.ts";
import { writeScript } from "../harness/temporary.ts";
import { type Example, main, makeExample } from "./project.ts";

/** Git allows no local path as the address of a submodule, unless its user says so. */
const localPaths = {
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "protocol.file.allow",
  GIT_CONFIG_VALUE_0: "always",
};

test("a submodule is checked out, and follows to another commit, address and path", async (t) => {
  const example = makeExample(t);
  const { workPath } = example;
  const one = makeLibrary(example, "one", "first\n");
  addSubmodule(example, one);
  await assertDeploys(example, "lib", "first\n");

  commitIn(one, "second\n");
  submodule(example, "update", "--quiet", "--remote", "lib");
  await assertDeploys(example, "lib", "second\n");

  submodule(example, "set-url", "lib", makeLibrary(example, "two", "of another repository\n"));
  submodule(example, "update", "--quiet", "--remote", "lib");
  await assertDeploys(example, "lib", "of another repository\n");

  git(workPath, "mv", "lib", "vendored");
  await assertDeploys(example, "vendored", "of another repository\n");

  git(workPath, "rm", "--quiet", "vendored");
  mkdirSync(join(workPath, "vendored"));
  writeFileSync(join(workPath, "vendored/file.txt"), "no submodule any more\n");
  await assertDeploys(example, "vendored", "no submodule any more\n");
});

test("a submodule of a submodule, edits and a killed git's lock are no obstacle", async (t) => {
  const example = makeExample(t);
  const { repoPath } = example;
  const inner = makeLibrary(example, "inner", "inner\n");
  const outer = makeLibrary(example, "outer", "outer\n");
  git(outer, ...allowing, "submodule", "add", "--quiet", inner, "deep");
  git(outer, "commit", "--quiet", "--message", "A submodule");
  addSubmodule(example, outer);
  await assertDeploys(example, "lib/deep", "inner\n");

  writeFileSync(join(repoPath, "lib/file.txt"), "edited on the server\n");
  writeFileSync(join(repoPath, ".git/modules/lib/index.lock"), "");
  commitIn(outer, "newer\n");
  submodule(example, "update", "--quiet", "--remote", "lib");
  await assertDeploys(example, "lib", "newer\n");
});

test("a submodule of another user runs nothing as root", needs("otherUser"), async (t) => {
  const example = makeExample(t);
  const one = makeLibrary(example, "one", "first\n");
  addSubmodule(example, one);
  await assertDeploys(example, "lib", "first\n");
  const planted = join(example.repoPath, "lib");
  rmSync(join(planted, ".git"));
  git(planted, "init", "--quiet");
  const seen = join(example.repoPath, "seen");
  writeScript(join(planted, ".git/hooks/post-checkout"), `#!/bin/sh\ntouch ${seen}\n`);
  execFileSync("chown", ["-R", "1234:1234", planted]);
  const { output } = await example.deploy([main, example.push({ "page.txt": "second\n" })], localPaths);
  assert.match(
    output,
    /FAILED: These submodules belong to another user, .*: chown --recursive root \.\/lib$/m,
  );
  assert.equal(existsSync(seen), false);
});

test("a .gitmodules gets no protocol and no command that git does not allow", async (t) => {
  const example = makeExample(t, { "restart.sh": "#!/bin/sh\ntouch started\n" });
  const library = makeLibrary(example, "one", "first\n");
  addSubmodule(example, library);
  const trace = join(example.root, "pwned");
  const set = (key: string, value: string) =>
    git(example.workPath, "config", "--file", ".gitmodules", `submodule.lib.${key}`, value);
  for (const [key, value] of [
    ["url", `ext::sh -c "touch ${trace}"`],
    ["update", `!touch ${trace}`],
    ["url", `--upload-pack=touch ${trace}`],
    ["url", library],
  ] as const) {
    set("url", "https://127.0.0.1:1/x.git");
    set(key, value);
    assert.equal((await example.deploy([main, example.push()])).code, 1, value);
    assert.equal(existsSync(trace), false, value);
  }
  assert.equal(existsSync(join(example.repoPath, "started")), false, "nothing is built then");
});

const pointer = (digit: string) =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${digit.repeat(64)}\nsize 5000\n`;
const attributes = { ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n" };

test("pointers of Git LFS without git-lfs fail the deployment before anything is built", async (t) => {
  const example = makeExample(t, { "restart.sh": "#!/bin/sh\ntouch started\n" });
  example.putOnPath("git-lfs", "#!/bin/sh\nexit 127\n");
  // A machine's own git-lfs would refuse to push a pointer to nothing.
  git(example.workPath, "config", "core.hooksPath", "/dev/null");
  const files = { ...attributes, "a model.bin": pointer("a"), "-b.bin": pointer("b") };
  const { code, output } = await example.deploy([main, example.push(files)]);
  assert.equal(code, 1, output);
  assert.match(output, /^FAILED: git-lfs is missing.* -b\.bin a model\.bin .*apt-get install git-lfs/m);
  assert.equal(existsSync(join(example.repoPath, "started")), false);
});

test("with git-lfs, pointers that were checked out without it are fetched", needs("gitLfs"), async (t) => {
  const example = makeExample(t);
  git(example.workPath, "lfs", "install", "--local");
  git(example.workPath, "config", "lfs.url", `file://${example.remotePath}`);
  const large = "0123456789\n".repeat(500);
  await example.deployed([main, example.push({ ...attributes, "model.bin": large })]);
  assert.equal(example.read("model.bin"), large);
});

const allowing = ["-c", "protocol.file.allow=always"];

function makeLibrary({ root }: Example, name: string, text: string): string {
  const path = join(root, name);
  mkdirSync(path);
  git(path, "init", "--quiet", "--initial-branch=main");
  commitIn(path, text);
  return path;
}

function commitIn(path: string, text: string): void {
  writeFileSync(join(path, "file.txt"), text);
  git(path, "add", "--all");
  git(path, "commit", "--quiet", "--message", "A change");
}

function submodule({ workPath }: Example, ...args: readonly string[]): void {
  git(workPath, ...allowing, "submodule", ...args);
}

function addSubmodule(example: Example, library: string): void {
  submodule(example, "add", "--quiet", "--name", "lib", library, "lib");
}

/** Deploys what the clone has now, and checks what the file of a submodule says then. */
async function assertDeploys(example: Example, path: string, text: string) {
  await example.deployed([main, example.push()], { ...localPaths, DEPLOY_ID: "7" });
  assert.equal(example.read(`${path}/file.txt`), text);
}
