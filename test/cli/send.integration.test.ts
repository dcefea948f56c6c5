import assert from "node:assert/strict";
import { chownSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testSecret } from "../harness/delivery.ts";
import { runCli } from "../harness/hotpush.ts";
import { makeMachine } from "../harness/machine.ts";
import { readRecorded } from "../harness/records.ts";
import { makeRepository } from "../harness/repository.ts";
import { nobody } from "../harness/requirements.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

/** A repository with a remote, and a service that has its secret. */
const repository = makeRepository(test);
const main = repository.commit("Show the tide of tomorrow");
repository.git("remote", "add", "origin", "git@github.com:octo/shop.git");
const service = await startService(test);
const asRoot = { skip: process.getuid?.() === 0 ? false : "it takes root to give files to another user" };
const port = { WEBHOOK_PORT: String(service.port) };
const send = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  sendJson(args, { ...port, WEBHOOK_SECRET: testSecret, ...env });

async function sendJson(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd = repository.directory,
) {
  const { code, stdout } = await runCli(["send", "--json", ...args], { cwd, env });
  const sent: { readonly outcome?: string; readonly commit?: string } = JSON.parse(stdout || "{}");
  return { code, ...sent };
}

test("without a remote, the head is deployed each time, and a dry run deploys nothing", async () => {
  for (const id of [1, 2]) {
    assert.equal((await send(["--dry-run"])).outcome, "would-deploy");
    assert.equal((await send([])).code, 0);
    await service.log.waitForEnding(id);
    assert.deepEqual(service.log.outputOf(id), ["==> Deploy", `deployed refs/heads/main ${main}`]);
  }
  const recorded = readRecorded(service.statePath, ({ all }) => all("SELECT 1 FROM deployments"));
  assert.equal(recorded.length, 2);
});

test("a signing token of GitLab signs too", async (t) => {
  const WEBHOOK_SECRET = "whsec_JtiGRRxPo1ai3BhIeLgBd+WnzfVsXEtvexTStoIV8IQ=";
  const other = await startService(t, { env: { WEBHOOK_SECRET } });
  const sent = await send(["--dry-run"], { WEBHOOK_SECRET, WEBHOOK_PORT: String(other.port) });
  assert.equal(sent.outcome, "would-deploy");
});

test("a wrong option is a wrong command line", async () => {
  assert.equal((await send(["--secret", "x"])).code, 2);
  assert.equal((await send(["--url", "shop.example.org"])).code, 1);
});

test("the secret comes from .env here, or from a file", async () => {
  const sent = async (env = {}) => (await sendJson(["--dry-run"], { ...port, ...env })).code;
  assert.equal(await sent(), 1);
  repository.write(".env", `WEBHOOK_SECRET=${testSecret}\n`);
  assert.equal(await sent(), 0);
  repository.write(".env", "");
  repository.write("secret", `${testSecret}\n`);
  assert.equal(await sent({ WEBHOOK_SECRET_FILE: join(repository.directory, "secret") }), 0);
  assert.equal(await sent({ WEBHOOK_SECRET: "change-me" }), 1);
});

test("root signs with nothing that another user's .env names", asRoot, async (t) => {
  const { directory, write, commit } = makeRepository(t);
  const secret = join(temporaryDirectory(t), "secret");
  writeFileSync(secret, `${testSecret}\n`, { mode: 0o600 });
  write(".env", `WEBHOOK_SECRET_FILE=${secret}\n`);
  commit();
  const sent = async () => (await sendJson(["--dry-run"], port, directory)).code;
  assert.equal(await sent(), 0);
  chownSync(join(directory, ".env"), nobody, nobody);
  assert.equal(await sent(), 1);
  chownSync(join(directory, ".env"), 0, 0);
  chownSync(directory, nobody, nobody);
  assert.equal(await sent(), 1, "nor one that they could replace");
});

test("send takes the head of main, else of master, whatever is checked out", async (t) => {
  const { git, commit } = repository;
  const sent = async (env = {}) => (await send(["--dry-run"], env)).commit;
  git("switch", "--quiet", "--create", "master");
  const master = commit("On master");
  assert.deepEqual([await sent(), await sent({ BRANCH: "master" })], [main, master]);
  git("branch", "--quiet", "--delete", "--force", "main");
  assert.equal(await sent(), master);
  const env = { ...port, WEBHOOK_SECRET: testSecret };
  assert.equal((await sendJson(["--dry-run"], env, temporaryDirectory(t))).code, 1);
});

test("send --project pushes the head of a project, with its secret, to its own address", async (t) => {
  const machine = makeMachine(t);
  const { directory, commit } = makeRepository(t);
  writeScript(join(directory, "deploy.sh"), "#!/bin/sh\n");
  const head = commit("Show the tide of tomorrow");
  machine.addProject("shop", directory, { WEBHOOK_SECRET: "the secret of the shop, long enough" });
  const all = await machine.start("all");
  const env = { PROJECTS_PATH: machine.projectsPath, WEBHOOK_PORT: String(all.port) };
  const sent = await sendJson(["--project", "shop"], env, "/");
  assert.deepEqual([sent.code, sent.commit], [0, head]);
  await all.log.waitForEnding(1);
  for (const name of ["shoe", "../shop"])
    assert.equal((await sendJson(["--project", name], env, "/")).code, 1);
});
