import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { connectEngine } from "../../src/platform/docker/engine.ts";
import { lockRollout } from "../../src/rollout/lock.ts";
import type { RolloutRequest } from "../../src/rollout/request.ts";
import { withRollout } from "../../src/rollout/with-rollout.ts";
import { listenAt } from "../harness/listen.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("a roll-out that ends while compose computes hashes releases its lock", async (t) => {
  const { request, askingPath } = await requestToSlowCompose(t);
  const ending = await withRollout(request, async () => {
    await until("compose is asked", () => existsSync(askingPath) && readFileSync(askingPath, "utf8") !== "");
    return { kind: "done" } as const;
  });
  assert.equal(ending.kind, "done");
  await (await lockRollout(request.lockPath, 5)).release();
  const pid = Number(readFileSync(askingPath, "utf8"));
  await until("its end", () => !existsSync(`/proc/${pid}`));
});

test("the error of compose for an unreadable file hides the project's secrets", async (t) => {
  const { request } = await requestToSlowCompose(t);
  const directory = request.target.projectDirectory;
  writeFileSync(join(directory, "app.env"), "API_TOKEN=token-in-env_file\n");
  writeFileSync(join(directory, ".env.example"), "API_TOKEN=no_secret\n");
  const complaint = "app.env: no_secret, token-in-env_file, token-of-the-shell";
  writeScript(join(directory, "docker"), `#!/bin/sh\necho '${complaint}' >&2\nexit 15\n`);
  const env = { ...request.env, APP_TOKEN: "token-of-the-shell" };
  const ending = await withRollout({ ...request, env }, async () => ({ kind: "done" }) as const);
  assert.ok(ending.kind === "failed");
  assert.deepEqual(ending.evidence, ["app.env: no_secret, ***, ***"]);
});

/** Compose answers for the model at once, and for the hashes after minutes, which the real one cannot be made to. */
async function requestToSlowCompose(t: TestContext) {
  const directory = temporaryDirectory(t);
  const askingPath = join(directory, "asking");
  const model = JSON.stringify({ name: "shop", services: { app: { image: "app" } } });
  const asked = `*--hash*) echo $$ > ${askingPath}; exec sleep 600 ;;\n*) echo '${model}' ;;`;
  writeScript(join(directory, "docker"), `#!/bin/sh\ncase "$*" in\n${asked}\nesac\n`);
  const server = createServer((_, response) => response.end("[]"));
  const socket = await listenAt(t, server, join(directory, "docker.sock"));
  const request: RolloutRequest = {
    engine: connectEngine(`unix://${socket}`),
    target: { projectDirectory: directory, files: [] },
    env: { PATH: [directory, process.env.PATH].join(delimiter) },
    services: [],
    commit: undefined,
    liveDirectory: undefined,
    lockPath: join(directory, "rollout.lock"),
    versionsPath: join(directory, "versions.json"),
    statePath: directory,
    lockWaitS: 0,
    withBuild: true,
    withPull: false,
    report: () => {},
    signal: new AbortController().signal,
  };
  return { request, askingPath };
}
