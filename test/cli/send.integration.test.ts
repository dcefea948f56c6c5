import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { testSecret } from "../harness/delivery.ts";
import { runCli } from "../harness/hotpush.ts";
import { makeMachine } from "../harness/machine.ts";
import { readRecorded } from "../harness/records.ts";
import { makeRepository } from "../harness/repository.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

/** A repository with two commits and a remote, and a service that has its secret; `env` is for the service. */
async function makeSetting(t: TestContext, env: Readonly<Record<string, string>> = {}) {
  const repository = makeRepository(t);
  repository.commit("The first version");
  repository.commit("Show the tide of tomorrow");
  repository.git("remote", "add", "origin", "git@github.com:octo/shop.git");
  const service = await startService(t, { env });
  const settings = {
    WEBHOOK_SECRET: env.WEBHOOK_SECRET ?? testSecret,
    WEBHOOK_PORT: String(service.port),
  };
  const send = (args: readonly string[], more: Readonly<Record<string, string>> = {}, cwd?: string) =>
    sendJson(args, { ...settings, ...more }, cwd ?? repository.directory);
  return { repository, service, send };
}

async function sendJson(args: readonly string[], env: Readonly<Record<string, string>>, cwd: string) {
  const { code, stdout, stderr } = await runCli(["send", "--json", ...args], { cwd, env });
  return { code, stderr, ...(JSON.parse(stdout || "{}") as Record<string, unknown>) } as Sent;
}

interface Sent {
  readonly code: number;
  readonly stderr: string;
  readonly outcome?: string;
  readonly commit?: string;
  readonly repository?: string;
}

test("the head is deployed however often it is sent, and a dry run deploys nothing", async (t) => {
  const { repository, service, send } = await makeSetting(t);
  const commit = repository.git("rev-parse", "HEAD");
  for (const id of [1, 2]) {
    assert.equal((await send(["--dry-run"])).outcome, "would-deploy");
    assert.equal((await send([])).code, 0);
    await service.log.waitForEnding(id);
    assert.deepEqual(service.log.outputOf(id), ["==> Deploy", `deployed refs/heads/main ${commit}`]);
  }
  const recorded = readRecorded(service.statePath, ({ all }) => all("SELECT 1 FROM deployments"));
  assert.equal(recorded.length, 2);
});

test("a signing token of GitLab signs too", async (t) => {
  const secret = "whsec_JtiGRRxPo1ai3BhIeLgBd+WnzfVsXEtvexTStoIV8IQ=";
  const { send } = await makeSetting(t, { WEBHOOK_SECRET: secret });
  assert.equal((await send(["--dry-run"])).outcome, "would-deploy");
});

test("a wrong option is a wrong command line, and no option takes a secret", async (t) => {
  const directory = temporaryDirectory(t);
  assert.equal((await sendJson(["--secret", "x"], {}, directory)).code, 2);
  const env = { WEBHOOK_SECRET: testSecret };
  assert.equal((await sendJson(["--url", "shop.example.org"], env, directory)).code, 1);
});

test("the secret comes from .env here, or from a file", async (t) => {
  const { repository, service } = await makeSetting(t);
  const sent = async (env = {}) =>
    await sendJson(["--dry-run"], { WEBHOOK_PORT: String(service.port), ...env }, repository.directory);
  assert.equal((await sent()).code, 1);
  repository.write(".env", `WEBHOOK_SECRET=${testSecret}\n`);
  assert.equal((await sent()).code, 0);
  repository.write(".env", "");
  repository.write("secret", `${testSecret}\n`);
  assert.equal((await sent({ WEBHOOK_SECRET_FILE: join(repository.directory, "secret") })).code, 0);
  assert.equal((await sent({ WEBHOOK_SECRET: "change-me" })).code, 1);
});

test("send takes the head of main, else of master, whatever is checked out", async (t) => {
  const { repository, send } = await makeSetting(t);
  const { git, commit } = repository;
  const sent = async (env = {}) => (await send(["--dry-run"], env)).commit;
  const main = git("rev-parse", "HEAD");
  git("switch", "--quiet", "--create", "master");
  const master = commit("On master");
  assert.deepEqual([await sent(), await sent({ BRANCH: "master" })], [main, master]);
  git("branch", "--quiet", "--delete", "--force", "main");
  assert.equal(await sent(), master);
  assert.equal((await send(["--dry-run"], {}, makeRepository(t).directory)).code, 1);
});

test("send --project pushes the head of a project, with its secret, to its own address", async (t) => {
  const machine = makeMachine(t);
  const repository = makeRepository(t);
  writeScript(join(repository.directory, "deploy.sh"), "#!/bin/sh\n");
  const commit = repository.commit("Show the tide of tomorrow");
  machine.addProject("shop", repository.directory, { WEBHOOK_SECRET: "the secret of the shop, long enough" });
  const service = await machine.start("all");
  const env = { PROJECTS_PATH: machine.projectsPath, WEBHOOK_PORT: String(service.port) };
  const sent = await sendJson(["--project", "shop"], env, machine.secretsPath);
  assert.deepEqual([sent.code, sent.commit], [0, commit]);
  await service.log.waitForEnding(1);
  for (const name of ["shoe", "../shop"])
    assert.equal((await sendJson(["--project", name], env, machine.secretsPath)).code, 1);
});
