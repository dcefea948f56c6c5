import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connectEngine } from "../../src/platform/docker/engine.ts";
import { ProblemError } from "../../src/problems.ts";
import { lockRollout } from "../../src/rollout/lock.ts";
import type { RolloutEvent } from "../../src/rollout/report/report.ts";
import { type Version, writeVersions } from "../../src/rollout/versions.ts";
import { inTurn, withRollout } from "../../src/rollout/with-rollout.ts";
import { isProblem } from "../harness/is-problem.ts";
import { listenAt } from "../harness/listen.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { sampleRequest } from "./sample.ts";

test("a roll-out that ends while compose computes hashes releases its lock", async (t) => {
  const { request, askingPath } = await requestToSlowCompose(t);
  await withRollout(request, async () => {
    await until("compose is asked", () => existsSync(askingPath) && readFileSync(askingPath, "utf8") !== "");
    return [];
  });
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
  const going = withRollout({ ...request, env }, async () => []);
  await assert.rejects(going, (error) => {
    assert.ok(error instanceof ProblemError);
    assert.deepEqual(error.problem.evidence, ["app.env: no_secret, ***, ***"]);
    return true;
  });
});

test("a roll back chooses its version under the lock: the one before the live one", async (t) => {
  const report: (event: RolloutEvent) => void = ({ event }) => told.push(event);
  const told: string[] = [];
  const request = sampleRequest(temporaryDirectory(t), {
    back: { commit: undefined },
    lockWaitS: 10,
    report,
  });
  const [first, second, third] = [versionOf("1"), versionOf("2"), versionOf("3")];
  await writeVersions(request.versionsPath, [first, second]);
  const other = await lockRollout(request.lockPath, 0);
  const chosen: (Version | null)[] = [];
  const going = inTurn(request, async ({ version }) => {
    chosen.push(version);
    return [];
  });
  await until("it waits", () => told.includes("note"));
  await writeVersions(request.versionsPath, [first, second, third]);
  await other.release();
  await going;
  assert.deepEqual(chosen, [second]);
  assert.equal(told.at(-1), "finished");
});

test("without a matching good version, the error lists the ones that exist", async (t) => {
  const request = sampleRequest(temporaryDirectory(t), { back: { commit: "9" } });
  await writeVersions(request.versionsPath, [versionOf("1")]);
  const detail = /no good version of the commit 9 .*: 1{12}\. Nothing was changed\./;
  const going = inTurn(request, async () => assert.fail("it went back"));
  await assert.rejects(going, isProblem("no_previous_version", detail));
});

test("a roll-out that is asked to stop says so, whatever it was waiting for", async (t) => {
  const stopping = new AbortController();
  const request = sampleRequest(temporaryDirectory(t), { signal: stopping.signal });
  const going = inTurn(request, async ({ signal }) => {
    stopping.abort();
    return await sleep(60_000, [], { signal });
  });
  await assert.rejects(going, isProblem("rollout_interrupted", /asked to stop/));
});

function versionOf(digit: string): Version {
  const images = { app: { image: "shop-app", id: `sha256:${digit}`, tag: `shop-app:${digit}` } };
  return { commit: digit.repeat(40), finishedAt: `2026-01-0${digit}T00:00:00Z`, images };
}

/** Compose answers for the model at once, and for the hashes after minutes, which the real one cannot be made to. */
async function requestToSlowCompose(t: TestContext) {
  const directory = temporaryDirectory(t);
  const askingPath = join(directory, "asking");
  const model = JSON.stringify({ name: "shop", services: { app: { image: "app" } } });
  const asked = `*--hash*) echo $$ > ${askingPath}; exec sleep 600 ;;\n*) echo '${model}' ;;`;
  writeScript(join(directory, "docker"), `#!/bin/sh\ncase "$*" in\n${asked}\nesac\n`);
  const server = createServer((_, response) => response.end("[]"));
  const socket = await listenAt(t, server, join(directory, "docker.sock"));
  const engine = connectEngine(`unix://${socket}`);
  const env = { PATH: [directory, process.env.PATH].join(delimiter) };
  const request = sampleRequest(directory, { engine, env });
  return { request, askingPath };
}
