import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubPush, testSecret } from "../harness/delivery.ts";
import { makeSshKey } from "../harness/repository.ts";
import { spawnService, startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

async function giveUp(t: TestContext, env: Readonly<Record<string, string>>) {
  const directory = temporaryDirectory(t);
  const { child, log } = spawnService(t, {
    env: { NODE_COMPILE_CACHE: "", ...env },
    repoPath: directory,
    statePath: join(directory, "state"),
  });
  const [exitCode] = (await once(child, "close")) as [number | null];
  return { exitCode, text: log.otherText.join("\n"), lines: log.otherText };
}

test("DEPLOY_IMAGES is refused with ALLOWED_SIGNERS, because no signature is on an image", async (t) => {
  const signers = join(temporaryDirectory(t), "signers");
  writeFileSync(signers, `ada@example.com ${makeSshKey(t).publicKey}`);
  const { exitCode, lines } = await giveUp(t, { DEPLOY_IMAGES: "watch", ALLOWED_SIGNERS: signers });
  assert.equal(exitCode, 78);
  assert.match(lines.join(), /^hotpush: DEPLOY_IMAGES and ALLOWED_SIGNERS/);
});

test("all errors are reported together, each with its name on a line of its own", async (t) => {
  const { exitCode, lines } = await giveUp(t, {
    WEBHOOK_SECRET: " ",
    WEBHOOK_SECRET_PREVIOUS_FILE: "/nowhere",
    WEBHOOK_PORT: "web",
    REPO_PATH: "app",
  });
  assert.equal(exitCode, 78);
  assert.deepEqual(
    lines.map((line) => /^hotpush: (\w+)/.exec(line)?.[1]),
    ["WEBHOOK_PORT", "REPO_PATH", "WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS_FILE"],
  );
});

test("an address that cannot be used is refused, with what to set instead", async (t) => {
  const { port } = await startService(t);
  for (const [env, says] of [
    [{ WEBHOOK_PORT: String(port) }, new RegExp(`:${port} .+Set WEBHOOK_PORT`)],
    [{ WEBHOOK_HOST: "192.0.2.1" }, /192\.0\.2\.1.+Set WEBHOOK_HOST/],
  ] as const) {
    const { exitCode, text } = await giveUp(t, env);
    assert.equal(exitCode, 78);
    assert.match(text, says);
  }
});

test("a .env that cannot be read is refused", async (t) => {
  const repoPath = temporaryDirectory(t);
  mkdirSync(join(repoPath, ".env"));
  const { child, log } = spawnService(t, { repoPath, statePath: join(repoPath, "state") });
  assert.deepEqual((await once(child, "close"))[0], 78);
  assert.match(log.otherText.join("\n"), /\.env is there but cannot be read \(EISDIR\)/);
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
