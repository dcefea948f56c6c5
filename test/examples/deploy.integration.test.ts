import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { git } from "../harness/repository.ts";
import { writeScript } from "../harness/temporary.ts";
import { deployScript, type Example, main, makeExample } from "./project.ts";

const realGit = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();

/** An example whose script's calls of git are recorded; `afterFetch` runs after each fetch. */
function makeRecorded(t: TestContext, afterFetch = ":"): Example {
  const example = makeExample(t);
  const behind = `[[ "$*" != *" fetch "* ]] || { ${afterFetch.replaceAll("WORK", example.workPath)}; } >&2`;
  example.record("git", `${realGit} "$@" || code=$?\n${behind}\nexit "\${code:-0}"`);
  return example;
}

const fetchesOf = (example: Example) => example.calls("git").filter((call) => call.includes(" fetch "));

test("the pushed commit is deployed, edits are discarded, untracked files stay", async (t) => {
  const example = makeExample(t);
  const before = example.head();
  const pushed = example.push({ "page.txt": "second\n" });
  writeFileSync(join(example.repoPath, "page.txt"), "edited on the server\n");
  writeFileSync(join(example.repoPath, ".env"), "KEY=value\n");
  const output = await example.deployed([main, pushed]);
  assert.deepEqual([example.read("page.txt"), example.read(".env")], ["second\n", "KEY=value\n"]);
  const done = `==> Done: main is at ${pushed.slice(0, 7)} (was ${before.slice(0, 7)})`;
  assert.deepEqual(output.match(/^==> .*$/gm), ["==> Pull", "==> Health check", done]);
  assert.ok(output.endsWith(`${done}\n`), output);
});

test("what is here and not in git is not overwritten by a new file of the same name", async (t) => {
  const example = makeExample(t);
  const before = example.head();
  const at = (name: string) => join(example.repoPath, name);
  writeFileSync(at(".env"), "KEY=production\n");
  mkdirSync(at("data"));
  writeFileSync(at("data/orders"), "1000\n");
  // As a git that was killed leaves it, as it is in this version, and as `hotpush init` writes it.
  writeFileSync(at("half.txt"), "half of ");
  writeFileSync(at("same.txt"), "same\n");
  writeFileSync(at("compose.override.yaml"), "# Written by `hotpush init`; ours\n");
  const others = {
    "half.txt": "half of it\n",
    "same.txt": "same\n",
    "compose.override.yaml": "services: {}\n",
  };
  const pushed = example.push({ ".env": "KEY=changeme\n", data: "x\n", "página 1.txt": "new\n", ...others });
  const { code, output } = await example.deploy([main, pushed]);
  assert.deepEqual([code, example.head()], [1, before], output);
  assert.match(
    output,
    /FAILED: This version has files that are here too, .* not in git: \.env data\. Nothing/,
  );
  assert.deepEqual([example.read(".env"), example.read("data/orders")], ["KEY=production\n", "1000\n"]);
  for (const name of [".env", "data"]) rmSync(at(name), { recursive: true });
  writeFileSync(at("page.txt"), "edited on the server\n");
  assert.match(await example.deployed([main, pushed]), /^Discarding what was edited here .*: page\.txt $/m);
  assert.deepEqual([example.read(".env"), example.read("half.txt")], ["KEY=changeme\n", "half of it\n"]);
});

test("a file or link in place of a new directory is not overwritten", async (t) => {
  const example = makeExample(t);
  const at = (name: string) => join(example.repoPath, name);
  writeFileSync(at("data"), "mine\n");
  symlinkSync("/nonexistent", at("uploads"));
  const files = { "data/1": "1\n", "data/2": "2\n", "uploads/a/.keep": "" };
  const pushed = example.push(files);
  assert.match((await example.deploy([main, pushed])).output, /not in git: data uploads\. Nothing/);
  assert.equal(example.read("data"), "mine\n");
  for (const name of ["data", "uploads"]) rmSync(at(name));
  await example.deployed([main, pushed]);
  // What is in git may be replaced.
  git(example.workPath, "rm", "--quiet", "page.txt");
  await example.deployed([main, example.push({ "page.txt/1": "a directory now\n" })]);
  assert.equal(example.read("page.txt/1"), "a directory now\n");
});

test("a checkout without a commit gets the first one, and keeps what is not in git", async (t) => {
  const example = makeExample(t);
  const pushed = example.push({ "page.txt": "second\n" });
  git(example.repoPath, "update-ref", "-d", "HEAD");
  git(example.repoPath, "rm", "-r", "--quiet", "--cached", ".");
  writeFileSync(join(example.repoPath, "page.txt"), "mine\n");
  assert.match((await example.deploy([main, pushed])).output, /not in git: page\.txt\. Nothing/);
  rmSync(join(example.repoPath, "page.txt"));
  assert.match(await example.deployed([main, pushed]), /\(was nothing\)/);
  assert.equal(example.read("page.txt"), "second\n");
});

test("a hook of the checkout whose program is missing does not stop it", async (t) => {
  const example = makeExample(t, { ".husky/post-checkout": "" });
  writeScript(join(example.repoPath, ".husky/post-checkout"), "#!/bin/sh\nnpx lint-staged\nexit 1\n");
  git(example.repoPath, "config", "core.hooksPath", ".husky");
  await example.deployed([main, example.push({ "page.txt": "second\n" })]);
  assert.equal(example.read("page.txt"), "second\n");
});

test("master is deployed if master was pushed", async (t) => {
  const example = makeExample(t);
  const { workPath, repoPath } = example;
  const before = example.head();
  const pushed = example.push({ "page.txt": "from master\n" });
  git(workPath, "push", "--quiet", "--force", "origin", `${pushed}:refs/heads/master`, `${before}:${main}`);
  await example.deployed(["refs/heads/master", pushed]);
  assert.equal(example.read("page.txt"), "from master\n");
  assert.equal(git(repoPath, "branch", "--show-current"), "master");
  assert.equal(git(repoPath, "rev-parse", "main"), before);
});

test("a push that comes late deploys the newer one that is there already", async (t) => {
  const example = makeExample(t);
  const older = example.push({ "page.txt": "older\n" });
  const newer = example.push({ "page.txt": "newer\n" });
  const output = await example.deployed([main, older]);
  assert.equal(example.read("page.txt"), "newer\n");
  assert.match(output, new RegExp(`moved on since that push: .*${newer.slice(0, 7)}`));
});

test("a commit that the remote does not have yet is waited for", async (t) => {
  const example = makeRecorded(t, `${realGit} -C WORK push --quiet origin late:main`);
  const before = example.head();
  const pushed = example.push({ "page.txt": "second\n" });
  git(example.workPath, "branch", "late");
  git(example.workPath, "push", "--quiet", "--force", "origin", `${before}:${main}`);
  assert.match(await example.deployed([main, pushed]), /is not there yet; trying again in 0 s/);
  assert.equal(fetchesOf(example).length, 2);
  assert.equal(example.read("page.txt"), "second\n");
});

test("Hotpush's commit is deployed without a fetch, though the branch has moved on, and packed", async (t) => {
  const example = makeRecorded(t);
  for (const [name, count] of [
    ["fetch.unpackLimit", "1"],
    ["gc.autoPackLimit", "1"],
  ] as const)
    git(example.repoPath, "config", name, count);
  const fetch = ["-c", "gc.auto=0", "fetch", "--quiet", "--no-write-fetch-head", "--refmap=", "origin"];
  const verified = example.push({ "page.txt": "verified\n" });
  git(example.repoPath, ...fetch, "main");
  example.push({ "page.txt": "not verified\n" });
  git(example.repoPath, ...fetch, "main");
  await example.deployed([main, verified], { DEPLOY_ID: "7" });
  assert.equal(fetchesOf(example).length, 0);
  assert.deepEqual([example.read("page.txt"), example.head()], ["verified\n", verified]);
  assert.match(git(example.repoPath, "count-objects", "-v"), /^packs: 1$/m);
});

test("a commit that a force push replaced fails, says so, and changes nothing", async (t) => {
  const example = makeExample(t);
  const replaced = example.push({ "page.txt": "replaced\n" });
  git(example.workPath, "reset", "--quiet", "--hard", "HEAD~1");
  const now = example.push({ "page.txt": "in its place\n" });
  const { code, output } = await example.deploy([main, replaced]);
  assert.equal(code, 1, output);
  assert.match(output, /a force push has replaced it, or it is gone\. Nothing was changed/);
  assert.ok(output.includes(`./deploy.sh refs/heads/main ${now}`), output);
  assert.equal(example.read("page.txt"), "first\n");
});

test("a deploy.sh that the push changed is the one that goes on, once", async (t) => {
  const example = makeExample(t);
  const before = example.head();
  const text = readFileSync(deployScript, "utf8");
  const changed = text.replace("check_health() {", 'check_health() {\n  echo "the new script"');
  const output = await example.deployed([main, example.push({ "deploy.sh": changed })]);
  assert.equal(output.match(/^the new script$/gm)?.length, 1, output);
  assert.equal(output.match(/^==> Pull$/gm)?.length, 1, output);
  assert.ok(output.endsWith(`(was ${before.slice(0, 7)})\n`), output);
  assert.equal(example.read("own.log"), output);
});

test("locks of a killed git are removed and reported, but not by hand", async (t) => {
  const example = makeExample(t);
  const pushed = example.push({ "page.txt": "second\n" });
  // What fetch, checkout and git's housekeeping lock.
  const locks = ["config", "index", "HEAD", "packed-refs", "shallow", main, "refs/remotes/origin/main"].map(
    (name) => `.git/${name}.lock`,
  );
  const areLeft = () => locks.map((lock) => existsSync(join(example.repoPath, lock)));
  for (const lock of locks) writeFileSync(join(example.repoPath, lock), "");
  const byHand = await example.deploy([main, pushed]);
  assert.notEqual(byHand.code, 0);
  assert.ok(!areLeft().includes(false));
  const output = await example.deployed([main, pushed], { DEPLOY_ID: "7" });
  assert.equal(example.read("page.txt"), "second\n");
  assert.ok(!areLeft().includes(true));
  for (const lock of locks)
    assert.ok(output.includes(`Removed ${lock}, which a git that was killed has left.\n`));
});

test("it can be run by hand, from anywhere, and names its log", (t) => {
  const example = makeExample(t);
  const script = join(example.repoPath, "deploy.sh");
  const options = { cwd: "/", env: example.env, encoding: "utf8" } as const;
  const { status, stdout, stderr } = spawnSync(script, [main, example.head()], options);
  assert.equal(status, 0, stdout + stderr);
  const path = /^Log: (.*)$/m.exec(stderr)?.[1] ?? "";
  assert.ok(path.startsWith(join(example.root, "tmp")), stderr);
  assert.equal(readFileSync(path, "utf8"), stdout);
});

test("arguments of any other shape are refused before git is called", async (t) => {
  const example = makeRecorded(t);
  const commitId = "a".repeat(40);
  for (const args of [
    [main],
    [main, commitId, "more"],
    ["refs/heads/main2", commitId],
    ["refs/heads/main\nrefs/heads/x", commitId],
    ["--upload-pack=touch x", commitId],
    [main, "HEAD"],
    [main, "a".repeat(39)],
    [main, `${commitId};touch x`],
  ]) {
    const { code, output } = await example.deploy(args);
    assert.equal(code, 1, JSON.stringify(args));
    assert.match(output, /^FAILED: Usage: deploy\.sh refs\/heads\/main\|master <commit of .*\n$/);
  }
  assert.deepEqual(example.calls("git"), []);
  assert.equal(git(example.repoPath, "status", "--porcelain"), "");
});

test("a directory inside somebody else's checkout is refused, and that checkout left alone", async (t) => {
  const example = makeExample(t);
  const inner = join(example.repoPath, "inner");
  mkdirSync(inner);
  writeFileSync(join(example.repoPath, "page.txt"), "edited\n");
  const { code, output } = await example.deployHead({ REPO_PATH: inner });
  assert.equal(code, 1);
  assert.match(output, /inner is not the root of a git checkout/);
  assert.equal(example.read("page.txt"), "edited\n");
});

test("the script of the README deploys the commit, and fails if a step fails", async (t) => {
  const readme = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");
  const script = /```bash\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  const example = makeExample(t, { "deploy.sh": script });
  const deployed = example.push({ "page.txt": "second\n" });
  example.putOnPath("hotpush", '#!/bin/sh\necho "hotpush $*"\n');
  example.putOnPath("curl", '#!/bin/sh\necho "curl"; test -e ../answers\n');
  const down = await example.deploy([main, deployed]);
  assert.equal(down.code, 1, down.output);
  assert.match(down.output, /^hotpush rollout --prune\ncurl$/m);
  assert.equal(example.head(), deployed);
  example.putOnPath("curl", "#!/bin/sh\n");
  assert.equal((await example.deploy([main, deployed])).code, 0);
  assert.equal((await example.deploy([main, "0".repeat(40)])).code, 128);
  assert.equal((await example.deploy(["refs/heads/master", deployed])).code, 128);
});
