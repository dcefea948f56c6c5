import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { needs } from "../harness/requirements.ts";
import { commit, deploy, git, makeProject, type Project, push, putOnPath } from "./project.ts";

const main = "refs/heads/main";
/** Git allows no local path as the address of a submodule, unless its user says so. */
const localPaths = {
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "protocol.file.allow",
  GIT_CONFIG_VALUE_0: "always",
};

test("a submodule is checked out, and follows to another commit, address and path", async (t) => {
  const project = await makeProject(t);
  const one = await makeLibrary(project, "one", "first\n");
  await addSubmodule(project, one, "lib");
  assert.deepEqual(await deployed(project, "lib"), { code: 0, text: "first\n" });

  await commitIn(project, one, "second\n");
  await submodule(project, "update", "--quiet", "--remote", "lib");
  assert.deepEqual(await deployed(project, "lib"), { code: 0, text: "second\n" });

  const two = await makeLibrary(project, "two", "of another repository\n");
  await submodule(project, "set-url", "lib", two);
  await submodule(project, "update", "--quiet", "--remote", "lib");
  assert.deepEqual(await deployed(project, "lib"), { code: 0, text: "of another repository\n" });

  await git(project, project.clone, "mv", "lib", "vendored");
  assert.deepEqual(await deployed(project, "vendored"), { code: 0, text: "of another repository\n" });

  await git(project, project.clone, "rm", "--quiet", "vendored");
  await mkdir(join(project.clone, "vendored"));
  await writeFile(join(project.clone, "vendored/file.txt"), "no submodule any more\n");
  assert.deepEqual(await deployed(project, "vendored"), { code: 0, text: "no submodule any more\n" });
});

test("a submodule of a submodule, edits and a killed git's lock are no obstacle", async (t) => {
  const project = await makeProject(t);
  const inner = await makeLibrary(project, "inner", "inner\n");
  const outer = await makeLibrary(project, "outer", "outer\n");
  await git(project, outer, ...allowing, "submodule", "add", "--quiet", inner, "deep");
  await git(project, outer, "commit", "--quiet", "--message", "A submodule");
  await addSubmodule(project, outer, "lib");
  assert.deepEqual(await deployed(project, "lib/deep"), { code: 0, text: "inner\n" });

  await writeFile(join(project.checkout, "lib/file.txt"), "edited on the server\n");
  await writeFile(join(project.checkout, ".git/modules/lib/index.lock"), "");
  await commitIn(project, outer, "newer\n");
  await submodule(project, "update", "--quiet", "--remote", "lib");
  assert.deepEqual(await deployed(project, "lib"), { code: 0, text: "newer\n" });
});

test("a submodule that cannot be fetched fails the deployment before anything is built", async (t) => {
  const project = await makeProject(t, { "restart.sh": "#!/bin/sh\ntouch started\n" });
  const library = await makeLibrary(project, "one", "first\n");
  await addSubmodule(project, library, "lib");
  const gone = join(project.root, "gone");
  await git(project, project.clone, "config", "--file", ".gitmodules", "submodule.lib.url", gone);
  assert.equal((await deployed(project, "lib")).code, 1);
  assert.equal(existsSync(join(project.checkout, "started")), false);
});

test("a .gitmodules gets no protocol and no command that git does not allow", async (t) => {
  const project = await makeProject(t);
  const library = await makeLibrary(project, "one", "first\n");
  await addSubmodule(project, library, "lib");
  const trace = join(project.root, "pwned");
  const set = (key: string, value: string) =>
    git(project, project.clone, "config", "--file", ".gitmodules", `submodule.lib.${key}`, value);
  for (const [key, value] of [
    ["url", `ext::sh -c "touch ${trace}"`],
    ["update", `!touch ${trace}`],
    ["url", `--upload-pack=touch ${trace}`],
    ["url", library],
  ] as const) {
    await set("url", "https://127.0.0.1:1/x.git");
    await set(key, value);
    const pushed = await commit(project, {});
    await push(project);
    assert.equal((await deploy(project, [main, pushed])).code, 1, value);
    assert.equal(existsSync(trace), false, value);
  }
});

const pointer = (digit: string) =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${digit.repeat(64)}\nsize 5000\n`;
const attributes = { ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n" };

test("pointers of Git LFS without git-lfs fail the deployment before anything is built", async (t) => {
  const project = await makeProject(t, { "restart.sh": "#!/bin/sh\ntouch started\n" });
  await putOnPath(project, "git-lfs", "#!/bin/sh\nexit 127\n");
  const pushed = await commit(project, {
    ...attributes,
    "a model.bin": pointer("a"),
    "-b.bin": pointer("b"),
  });
  await push(project);
  const { code, output } = await deploy(project, [main, pushed]);
  assert.equal(code, 1, output);
  assert.match(output, /^FAILED: git-lfs is missing.* -b\.bin a model\.bin .*apt-get install git-lfs/m);
  assert.equal(existsSync(join(project.checkout, "started")), false);
});

test("with git-lfs, pointers that were checked out without it are fetched", needs("gitLfs"), async (t) => {
  const project = await makeProject(t);
  await git(project, project.clone, "lfs", "install", "--local");
  await git(project, project.clone, "config", "lfs.url", `file://${project.remote}`);
  const large = "0123456789\n".repeat(500);
  const pushed = await commit(project, { ...attributes, "model.bin": large });
  await push(project);
  const { code, output } = await deploy(project, [main, pushed]);
  assert.equal(code, 0, output);
  assert.equal(await readFile(join(project.checkout, "model.bin"), "utf8"), large);
});

const allowing = ["-c", "protocol.file.allow=always"];

async function makeLibrary(project: Project, name: string, text: string): Promise<string> {
  const path = join(project.root, name);
  await mkdir(path);
  await git(project, path, "init", "--quiet", "--initial-branch=main");
  await commitIn(project, path, text);
  return path;
}

async function commitIn(project: Project, path: string, text: string): Promise<void> {
  await writeFile(join(path, "file.txt"), text);
  await git(project, path, "add", "--all");
  await git(project, path, "commit", "--quiet", "--message", "A change");
}

function submodule(project: Project, ...args: readonly string[]): Promise<string> {
  return git(project, project.clone, ...allowing, "submodule", ...args);
}

async function addSubmodule(project: Project, library: string, path: string): Promise<void> {
  await submodule(project, "add", "--quiet", "--name", "lib", library, path);
}

/** Deploys what the clone has now. @returns the exit code, and what the library's file says */
async function deployed(project: Project, path: string) {
  const pushed = await commit(project, {});
  await push(project);
  const { code, output } = await deploy(project, [main, pushed], { ...localPaths, DEPLOY_ID: "7" });
  assert.ok(code === 0 || output.includes("FAILED: "), output);
  const text = await readFile(join(project.checkout, path, "file.txt"), "utf8").catch(() => "");
  return { code, text };
}
