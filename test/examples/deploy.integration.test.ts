import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { listenHere } from "../harness/listen.ts";
import {
  commit,
  deploy,
  deployScript,
  git,
  gitCalls,
  makeProject,
  type Project,
  page,
  push,
  putOnPath,
  realGit,
  recordGit,
} from "./project.ts";

const main = "refs/heads/main";

test("the pushed commit is deployed, and the last line says what is live", async (t) => {
  const project = await makeProject(t);
  const before = await git(project, project.checkout, "rev-parse", "HEAD");
  const pushed = await commit(project, { "page.txt": "second\n" });
  await push(project);
  const { code, output } = await deploy(project, [main, pushed]);
  assert.equal(code, 0, output);
  assert.equal(await page(project), "second\n");
  const steps = output.match(/^==> .*$/gm);
  const done = `==> Done: main is at ${pushed.slice(0, 7)} (was ${before.slice(0, 7)})`;
  assert.deepEqual(steps, ["==> Pull", "==> Health check", done]);
  assert.ok(output.endsWith(`${done}\n`), output);
});

test("master is deployed if master was pushed", async (t) => {
  const project = await makeProject(t);
  const before = await git(project, project.checkout, "rev-parse", "main");
  await git(project, project.clone, "checkout", "--quiet", "-b", "master");
  const pushed = await commit(project, { "page.txt": "from master\n" });
  await push(project);
  const { code, output } = await deploy(project, ["refs/heads/master", pushed]);
  assert.equal(code, 0, output);
  assert.equal(await page(project), "from master\n");
  assert.equal(await git(project, project.checkout, "branch", "--show-current"), "master");
  assert.equal(await git(project, project.checkout, "rev-parse", "main"), before);
});

test("a push that comes late deploys the newer one that is there already", async (t) => {
  const project = await makeProject(t);
  const older = await commit(project, { "page.txt": "older\n" });
  const newer = await commit(project, { "page.txt": "newer\n" });
  await push(project);
  const { code, output } = await deploy(project, [main, older]);
  assert.equal(code, 0, output);
  assert.equal(await page(project), "newer\n");
  assert.match(output, new RegExp(`moved on since that push: .*${newer.slice(0, 7)}`));
});

test("a commit that the remote does not have yet is waited for", async (t) => {
  const project = await makeProject(t);
  const pushed = await commit(project, { "page.txt": "second\n" });
  await recordGit(project, `${realGit} -C '${project.clone}' push --quiet origin HEAD`);
  const { code, output } = await deploy(project, [main, pushed]);
  assert.equal(code, 0, output);
  assert.match(output, /is not there yet; trying again in 0 s/);
  assert.equal((await fetches(project)).length, 2);
  assert.equal(await page(project), "second\n");
});

test("Hotpush's commit is deployed without a fetch, though the branch has moved on", async (t) => {
  const project = await makeProject(t);
  const verified = await commit(project, { "page.txt": "verified\n" });
  await commit(project, { "page.txt": "not verified\n" });
  await push(project);
  await git(
    project,
    project.checkout,
    "fetch",
    "--quiet",
    "--no-write-fetch-head",
    "--refmap=",
    "origin",
    "main",
  );
  const { code, output } = await deploy(project, [main, verified], { DEPLOY_ID: "7" });
  assert.equal(code, 0, output);
  assert.equal((await fetches(project)).length, 0);
  assert.equal(await page(project), "verified\n");
  assert.equal(await git(project, project.checkout, "rev-parse", "HEAD"), verified);
});

test("a commit that a force push replaced fails, says so, and changes nothing", async (t) => {
  const project = await makeProject(t);
  const replaced = await commit(project, { "page.txt": "replaced\n" });
  await push(project);
  await git(project, project.clone, "reset", "--quiet", "--hard", "HEAD~1");
  const now = await commit(project, { "page.txt": "in its place\n" });
  await push(project, "--force");
  const { code, output } = await deploy(project, [main, replaced]);
  assert.equal(code, 1, output);
  assert.match(
    output,
    /is not in main of origin: a force push has replaced it, or it is gone\. Nothing was changed/,
  );
  assert.ok(output.includes(`./deploy.sh refs/heads/main ${now}`), output);
  assert.equal(await page(project), "first\n");
  assert.ok(!output.includes("==> Done"));
});

test("local edits are discarded, untracked files stay", async (t) => {
  const project = await makeProject(t);
  const pushed = await commit(project, { "other.txt": "new\n" });
  await push(project);
  await writeFile(join(project.checkout, "page.txt"), "edited on the server\n");
  await writeFile(join(project.checkout, ".env"), "KEY=value\n");
  const { code, output } = await deploy(project, [main, pushed]);
  assert.equal(code, 0, output);
  assert.equal(await page(project), "first\n");
  assert.equal(await readFile(join(project.checkout, ".env"), "utf8"), "KEY=value\n");
});

test("a deploy.sh that the push changed is the one that goes on, once", async (t) => {
  const project = await makeProject(t);
  const before = await git(project, project.checkout, "rev-parse", "HEAD");
  const text = await readFile(deployScript, "utf8");
  const changed = text.replace("check_health() {", 'check_health() {\n  echo "the new script"');
  const pushed = await commit(project, { "deploy.sh": changed });
  await push(project);
  const { code, output, log } = await deploy(project, [main, pushed]);
  assert.equal(code, 0, output);
  assert.equal(output.match(/^the new script$/gm)?.length, 1, output);
  assert.equal(output.match(/^==> Pull$/gm)?.length, 1, output);
  assert.ok(output.endsWith(`(was ${before.slice(0, 7)})\n`), output);
  assert.equal(log, output);
});

/** What fetch, checkout and git's housekeeping lock. */
const leftLocks = ["index", "HEAD", "packed-refs", "shallow", main, "refs/remotes/origin/main"];

test("locks of a killed git are removed and reported, and do not stop a deployment", async (t) => {
  const project = await makeProject(t);
  const pushed = await commit(project, { "page.txt": "second\n" });
  await push(project);
  await leaveLocks(project, leftLocks);
  const { code, output } = await deploy(project, [main, pushed], { DEPLOY_ID: "7" });
  assert.equal(code, 0, output);
  assert.equal(await page(project), "second\n");
  for (const name of leftLocks) {
    assert.equal(existsSync(lockOf(project, name)), false, name);
    assert.ok(output.includes(`Removed .git/${name}.lock, which a git that was killed has left.\n`), output);
  }
});

test("by hand, a lock may be that of a living git: it stays, and git says what to do", async (t) => {
  const project = await makeProject(t);
  const pushed = await commit(project, { "page.txt": "second\n" });
  await push(project);
  await leaveLocks(project, ["index"]);
  const { code, output } = await deploy(project, [main, pushed]);
  assert.notEqual(code, 0);
  assert.match(output, /index\.lock': File exists/);
  assert.ok(existsSync(lockOf(project, "index")));
  assert.equal(await page(project), "first\n");
});

test("it can be run by hand, from anywhere, and names its log", async (t) => {
  const project = await makeProject(t);
  const head = await git(project, project.checkout, "rev-parse", "HEAD");
  const script = join(project.checkout, "deploy.sh");
  const { status, stdout, stderr } = spawnSync(script, [main, head], {
    cwd: "/",
    env: project.env,
    encoding: "utf8",
  });
  assert.equal(status, 0, stdout + stderr);
  const path = /^Log: (.*)$/m.exec(stderr)?.[1] ?? "";
  assert.ok(path.startsWith(join(project.root, "tmp")), stderr);
  assert.equal(await readFile(path, "utf8"), stdout);
});

test("arguments of any other shape are refused before git is called", async (t) => {
  const project = await makeProject(t);
  const commitId = "a".repeat(40);
  const refused = [
    [],
    [main],
    [main, commitId, "more"],
    ["main", commitId],
    ["refs/heads/main2", commitId],
    ["refs/heads/", commitId],
    ["refs/tags/main", commitId],
    ["refs/heads/main\n", commitId],
    ["refs/heads/main\nrefs/heads/x", commitId],
    ["--upload-pack=touch x", commitId],
    ["$(touch x)", commitId],
    [main, "$(touch x)"],
    [main, "`touch x`"],
    [main, "--upload-pack=touch x"],
    [main, "HEAD"],
    [main, "a".repeat(39)],
    [main, "a".repeat(41)],
    [main, "A".repeat(40)],
    [main, `${commitId}\n`],
    [main, `${commitId};touch x`],
  ];
  for (const args of refused) {
    const { code, output } = await deploy(project, args);
    assert.equal(code, 1, JSON.stringify(args));
    assert.match(output, /^FAILED: Usage: deploy\.sh refs\/heads\/main\|master <commit of .*\n$/);
  }
  assert.deepEqual(await gitCalls(project), []);
  assert.equal(await git(project, project.checkout, "status", "--porcelain"), "");
});

test("a directory inside somebody else's checkout is refused, and that checkout left alone", async (t) => {
  const project = await makeProject(t);
  const inner = join(project.checkout, "inner");
  await mkdir(inner);
  await writeFile(join(project.checkout, "page.txt"), "edited\n");
  const head = await git(project, project.checkout, "rev-parse", "HEAD");
  const { code, output } = await deploy(project, [main, head], { REPO_PATH: inner });
  assert.equal(code, 1);
  assert.match(output, /inner is not the root of a git checkout/);
  assert.equal(await page(project), "edited\n");
});

for (const lookAlike of ["refs/heads/refs/heads/main", "refs/tags/refs/heads/main"]) {
  test(`a remote without main is refused, though it has ${lookAlike}`, async (t) => {
    const project = await makeProject(t);
    const head = await git(project, project.checkout, "rev-parse", "HEAD");
    const tip = await commit(project, { "page.txt": "not main\n" });
    await git(project, project.clone, "push", "--quiet", "origin", `${tip}:${lookAlike}`);
    await git(project, project.remote, "update-ref", "-d", main);
    const { code, output } = await deploy(project, [main, head]);
    assert.equal(code, 1, output);
    assert.match(output, /FAILED: .* has no branch main/);
    assert.equal(await page(project), "first\n");
  });
}

test("a private remote without credentials fails without asking for any", async (t) => {
  const project = await makeProject(t);
  const server = createServer((_request, response) => {
    response.writeHead(401, { "WWW-Authenticate": 'Basic realm="git"' }).end();
  });
  const url = `http://127.0.0.1:${await listenHere(t, server)}/shop.git`;
  await git(project, project.checkout, "remote", "set-url", "origin", url);
  const { code, output } = await deploy(project, [main, "a".repeat(40)]);
  assert.equal(code, 1);
  assert.match(output, /terminal prompts disabled/);
  assert.match(output, /FAILED: git could not fetch main from origin, for the reason above/);
});

test("the script of the README deploys the commit, and fails if a step fails", async (t) => {
  const readme = await readFile(join(import.meta.dirname, "../../README.md"), "utf8");
  const script = /```bash\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  const project = await makeProject(t, { "deploy.sh": script });
  const deployed = await commit(project, { "page.txt": "second\n" });
  await push(project);
  await putOnPath(project, "hotpush", '#!/bin/sh\necho "hotpush $*"\n');
  await putOnPath(project, "curl", '#!/bin/sh\necho "curl"; test -e ../answers\n');
  const down = await deploy(project, ["refs/heads/main", deployed]);
  assert.equal(down.code, 1, down.output);
  assert.match(down.output, /^hotpush rollout --prune\ncurl$/m);
  assert.equal(await git(project, project.checkout, "rev-parse", "HEAD"), deployed);
  await putOnPath(project, "curl", "#!/bin/sh\n");
  assert.equal((await deploy(project, ["refs/heads/main", deployed])).code, 0);
  assert.equal((await deploy(project, ["refs/heads/main", "0".repeat(40)])).code, 128);
  assert.equal((await deploy(project, ["refs/heads/master", deployed])).code, 128);
});

function lockOf({ checkout }: Project, name: string): string {
  return join(checkout, ".git", `${name}.lock`);
}

/** As a git leaves them that is killed before it has written what it was about to. */
async function leaveLocks(project: Project, names: readonly string[]): Promise<void> {
  for (const name of names) await writeFile(lockOf(project, name), "");
}

async function fetches(project: Project): Promise<string[]> {
  return (await gitCalls(project)).filter((call) => call.includes(" fetch "));
}
