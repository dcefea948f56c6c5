import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { connectEngine } from "../../src/platform/docker/engine.ts";
import { ProblemError } from "../../src/problems.ts";
import { lockRollout } from "../../src/rollout/lock.ts";
import type { RolloutEvent } from "../../src/rollout/report.ts";
import { rollOut } from "../../src/rollout/rollout.ts";
import { type Version, writeVersions } from "../../src/rollout/versions.ts";
import { listenAt } from "../harness/listen.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { sampleRequest } from "./sample.ts";

test("the error of compose for an unreadable file hides the project's secrets", async (t) => {
  const complaint = "app.env: no_secret, token-in-env_file, token-of-the-shell";
  const request = await requestToCompose(t, `echo '${complaint}' >&2; exit 15`);
  const directory = request.target.projectDirectory;
  writeFileSync(join(directory, "app.env"), "API_TOKEN=token-in-env_file\n");
  writeFileSync(join(directory, ".env.example"), "API_TOKEN=no_secret\n");
  const env = { ...request.env, APP_TOKEN: "token-of-the-shell" };
  await assert.rejects(rollOut({ ...request, env }), (error) => {
    assert.ok(error instanceof ProblemError);
    assert.deepEqual(error.problem.evidence, ["app.env: no_secret, ***, ***"]);
    return true;
  });
});

test("a roll back chooses its version under the lock: the one before the live one", async (t) => {
  const model = JSON.stringify({ name: "shop", services: { app: { image: "app" } } });
  const events: RolloutEvent[] = [];
  const request = {
    ...(await requestToCompose(t, `case "$*" in *--hash*) ;; *) echo '${model}' ;; esac`)),
    back: { commit: undefined },
    lockWaitS: 10,
    report: (event: RolloutEvent) => events.push(event),
  };
  const first = versionOf("1");
  const second = versionOf("2");
  const third = versionOf("3");
  await writeVersions(request.versionsPath, [first, second]);
  const other = await lockRollout(request.lockPath, 0);
  const going = rollOut(request).catch(() => {}); // There is no container to roll out.
  await until("it waits", () => events.some(({ event }) => event === "note"));
  await writeVersions(request.versionsPath, [first, second, third]);
  await other.release();
  await going;
  const started = events.find(({ event }) => event === "started");
  assert.equal(started?.event === "started" && started.commit, second.commit);
});

test("without a matching good version, the error lists the ones that exist", async (t) => {
  const request = sampleRequest(temporaryDirectory(t), { back: { commit: "9" } });
  await writeVersions(request.versionsPath, [versionOf("1")]);
  const detail = /no good version of the commit 9 .*: 1{12}\. Nothing was changed\./;
  await assert.rejects(rollOut(request), isProblem("no_previous_version", detail));
});

function versionOf(digit: string): Version {
  const images = { app: { image: "shop-app", id: `sha256:${digit}`, tag: `shop-app:${digit}` } };
  return { commit: digit.repeat(40), finishedAt: `2026-01-0${digit}T00:00:00Z`, images };
}

/** A request to a `docker` that does what `script` says, and an engine that has nothing. */
async function requestToCompose(t: TestContext, script: string) {
  const directory = temporaryDirectory(t);
  writeScript(join(directory, "docker"), `#!/bin/sh\n${script}\n`);
  const server = createServer((_, response) => response.end("[]"));
  const socket = await listenAt(t, server, join(directory, "docker.sock"));
  const env = { PATH: [directory, process.env.PATH].join(delimiter) };
  return sampleRequest(directory, { engine: connectEngine(`unix://${socket}`), env });
}
