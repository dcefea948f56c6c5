import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { makeSecret } from "../../src/config/secret.ts";
import type { Deployment } from "../../src/deployments/deployment.ts";
import { readCommit } from "../../src/platform/git.ts";
import { createProjectScript } from "../../src/runner/known-secrets.ts";
import { noteHead, readRemoteHead, readSource } from "../../src/runner/repository.ts";
import { makeRunDirectory, runDirectory } from "../../src/runner/run-directory.ts";
import { randomCommit, testSecret } from "../harness/delivery.ts";
import { listenHere } from "../harness/listen.ts";
import { git, makeProject } from "../harness/project.ts";
import { makeRepository, type TestRepository } from "../harness/repository.ts";
import { deploymentWith } from "../harness/runs.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("the newer commit that is checked out is recorded", async (t) => {
  const repository = makeRepository(t);
  const pushed = repository.commit("What was pushed");
  const tip = repository.commit("What main was by then\n\nWith a body.");
  const expected = { checkedOutCommit: tip, subject: "What main was by then", author: "Mara Köhler" };
  for (const state of ["running", "succeeded", "failed"] as const)
    assert.deepEqual(await read(repository, { commit: pushed }, state), expected);
});

test("a HEAD without the commit asked for is recorded only after a success that moved it", async (t) => {
  const repository = makeRepository(t);
  const commit = randomCommit();
  const head = repository.commit();
  for (const state of ["running", "failed", "timed_out", "cancelled"] as const)
    assert.equal(await read(repository, { commit }, state, { headAtStart: randomCommit() }), null);
  const afterSuccess = (headAtStart?: string) => read(repository, { commit }, "succeeded", { headAtStart });
  assert.equal((await afterSuccess(randomCommit()))?.checkedOutCommit, head);
  assert.equal((await afterSuccess(""))?.checkedOutCommit, head);
  assert.equal(await afterSuccess(head), null);
  assert.equal(await afterSuccess(undefined), null);
});

test("a start notes the HEAD of the repository, or that there is none", async (t) => {
  const [repository, directory] = [makeRepository(t), runDirectory(temporaryDirectory(t), 1)];
  const head = repository.commit();
  makeRunDirectory(directory);
  await noteHead(directory, repository.directory, { env: { PATH: process.env.PATH } });
  assert.equal(readFileSync(directory.headPath, "utf8"), head);
  await noteHead(directory, temporaryDirectory(t), { env: { PATH: process.env.PATH } });
  assert.equal(readFileSync(directory.headPath, "utf8"), "");
});

test("a roll back records the commit it goes back to, and no commit checked out", async (t) => {
  const repository = makeRepository(t);
  const commit = repository.commit("The good one");
  repository.commit("The bad one");
  const back = { commit, trigger: "rollback" } as const;
  const expected = { checkedOutCommit: null, subject: "The good one", author: "Mara Köhler" };
  assert.deepEqual(await read(repository, back, "succeeded"), expected);
  assert.equal(await read(repository, { ...back, commit: "--output=/tmp/x" }, "succeeded"), null);
  assert.equal(await read(repository, { ...back, commit: randomCommit() }, "succeeded"), null);
});

test("subject and author cannot control a terminal, and are short", async (t) => {
  const repository = makeRepository(t);
  const hostile = `\u001b]0;owned\u0007\u001b[31mred\u202e\r\u2028${"x".repeat(500)}`;
  repository.git("config", "i18n.logOutputEncoding", "UTF-16");
  repository.git("config", "log.showSignature", "true");
  const author = "--author=Eve\u001b[2J\r\u202eEvil <eve@example.org>";
  repository.git("commit", "--quiet", "--allow-empty", author, "--message", hostile);
  const source = await read(repository, {}, "succeeded", { headAtStart: "" });
  const { subject = "", author: name } = source ?? {};
  assert.match(subject ?? "", /^red {2,3}x{100,}…$/);
  assert.ok((subject ?? "").length <= 200);
  assert.equal(name, "Eve  Evil");
});

test("git cuts a subject of megabytes", async (t) => {
  const { directory, git, write } = makeRepository(t);
  write("message", "x".repeat(4 * 1024 ** 2));
  git("commit", "--quiet", "--allow-empty", "--file", `${directory}/message`);
  const commit = await readCommit(directory, "HEAD", { env: { PATH: process.env.PATH } });
  assert.match(commit?.subject ?? "", /^x{900,998}\.\.$/);
});

test("outside a git repository, and without git, nothing is recorded", async (t) => {
  const directory = temporaryDirectory(t);
  assert.equal(await read({ directory }, {}, "succeeded"), null);
  assert.equal(
    await read(makeRepository(t), {}, "succeeded", { env: { PATH: "/nowhere" }, headAtStart: "" }),
    null,
  );
});

interface ReadOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** What a start noted; undefined: nothing is left of it. */
  readonly headAtStart?: string | undefined;
}

async function read(
  { directory }: Pick<TestRepository, "directory">,
  fields: Partial<Deployment>,
  state: Deployment["state"],
  { env = { PATH: process.env.PATH }, headAtStart }: ReadOptions = {},
) {
  const statePath = join(directory, "../state");
  if (headAtStart !== undefined) {
    const run = runDirectory(statePath, 1);
    makeRunDirectory(run);
    writeFileSync(run.headPath, headAtStart);
  }
  const script = createProjectScript({ env, deployEnv: [], repoPath: directory, secrets });
  return await readSource(script(), statePath, { ...deploymentWith(1), ...fields }, state);
}

const secrets = { current: makeSecret(testSecret), previous: null };

test("a remote that does not answer in time is reported, and no process is left", async (t) => {
  const { repoPath } = makeProject(t);
  const port = await listenHere(t, createServer());
  const url = `http://127.0.0.1:${port}/shop.git`;
  git(repoPath, "remote", "set-url", "origin", url);
  const script = createProjectScript({ env: process.env, deployEnv: [], repoPath, secrets });
  const asking = readRemoteHead(script(), "refs/heads/main", { timeoutMs: 1_000 });
  await until("git asks", () => processesWith(url).length > 0);
  const head = await asking;
  assert.match(head.kind === "unknown" ? head.detail : "", /the remote did not answer within 1 s$/);
  await until("all are gone", () => processesWith(url).length === 0);
});

test("the remote is the one that the script pulls from", async (t) => {
  const { repoPath } = makeProject(t);
  git(repoPath, "remote", "rename", "origin", "upstream");
  const env = { ...process.env, DEPLOY_REMOTE: "upstream" };
  const script = createProjectScript({ env, deployEnv: ["DEPLOY_REMOTE"], repoPath, secrets });
  const head = await readRemoteHead(script(), "refs/heads/main");
  assert.deepEqual(head, { kind: "head", commit: git(repoPath, "rev-parse", "upstream/main") });
});

/** The processes with `text` among their arguments; zombies have none. */
function processesWith(text: string): readonly string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && argumentsOf(name).includes(text));
}

function argumentsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
