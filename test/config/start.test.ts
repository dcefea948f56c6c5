import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubPush, testSecret } from "../harness/delivery.ts";
import { makeSshKey } from "../harness/repository.ts";
import { spawnService, startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

/** Starts a service that ends as its configuration is wrong. @returns what it prints */
async function giveUp(
  t: TestContext,
  env: Readonly<Record<string, string>>,
  repoPath = temporaryDirectory(t),
) {
  const statePath = join(repoPath, "state");
  const { child, log } = spawnService(t, { env: { NODE_COMPILE_CACHE: "", ...env }, repoPath, statePath });
  const [exitCode] = await once(child, "close");
  assert.equal(exitCode, 78);
  return log.otherText.join("\n");
}

test("DEPLOY_IMAGES is refused with ALLOWED_SIGNERS, because no signature is on an image", async (t) => {
  const signers = join(temporaryDirectory(t), "signers");
  writeFileSync(signers, `ada@example.com ${makeSshKey(t).publicKey}`);
  const text = await giveUp(t, { DEPLOY_IMAGES: "watch", ALLOWED_SIGNERS: signers });
  assert.match(text, /^hotpush: DEPLOY_IMAGES and ALLOWED_SIGNERS/);
});

test("DEPLOY_AFTER is refused without a token, or with a host that has no checks", async (t) => {
  const path = join(temporaryDirectory(t), "token");
  writeFileSync(path, "a-token-of-a-host\n", { mode: 0o600 });
  const gogs = { COMMIT_STATUS_URL: "gogs+https://git.example.com/o/app", COMMIT_STATUS_TOKEN_FILE: path };
  for (const env of [{}, gogs])
    assert.match(await giveUp(t, { DEPLOY_AFTER: "checks", ...env }), /^hotpush: .*DEPLOY_AFTER/m);
});

test("all errors are reported together, each with its name on a line of its own", async (t) => {
  const secrets = { WEBHOOK_SECRET: " ", WEBHOOK_SECRET_PREVIOUS_FILE: "/nowhere" };
  const text = await giveUp(t, { ...secrets, WEBHOOK_PORT: "web", REPO_PATH: "app" });
  assert.deepEqual(
    text.split("\n").map((line) => /^hotpush: (\w+)/.exec(line)?.[1]),
    ["WEBHOOK_PORT", "REPO_PATH", "WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS_FILE"],
  );
});

test("an address that cannot be used is refused, with what to set instead", async (t) => {
  const { port } = await startService(t);
  assert.match(await giveUp(t, { WEBHOOK_PORT: String(port) }), new RegExp(`:${port} .+Set WEBHOOK_PORT`));
  assert.match(await giveUp(t, { WEBHOOK_HOST: "192.0.2.1" }), /192\.0\.2\.1.+Set WEBHOOK_HOST/);
});

test("a .env that cannot be read is refused", async (t) => {
  const repoPath = temporaryDirectory(t);
  mkdirSync(join(repoPath, ".env"));
  assert.match(await giveUp(t, {}, repoPath), /\.env is there but cannot be read \(EISDIR\)/);
});

test("the service uses .env, and the environment takes precedence", async (t) => {
  const repoPath = temporaryDirectory(t);
  writeScript(join(repoPath, "deploy.sh"), '#!/bin/sh\necho "$GREETING"\n');
  const lines = [
    "WEBHOOK_SECRET=not this one but that of the environment",
    'REPOSITORY="octo/app" # ours',
    "export DEPLOY_ENV=GREETING",
    "GREETING='from .env'",
  ];
  writeFileSync(join(repoPath, ".env"), lines.join("\n"));
  const service = await startService(t, { repoPath });
  assert.equal((await deliver(service.url, githubPush({ repository: "octo/other" }))).json.status, "ignored");
  assert.equal((await deliver(service.url, githubPush({}, testSecret))).status, 202);
  await service.log.waitForEnding(1);
  assert.deepEqual(service.log.outputOf(1), ["from .env"]);
});
