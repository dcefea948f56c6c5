import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connectEngine } from "../../src/platform/docker/engine.ts";
import type { CommandEnding } from "../../src/platform/run-command.ts";
import { ProblemError } from "../../src/problems.ts";
import { lockRollout } from "../../src/rollout/lock.ts";
import type { RolloutEvent } from "../../src/rollout/report.ts";
import { createSemaphore, inTurn, startInSharedRuns, withRollout } from "../../src/rollout/rollout.ts";
import { type Version, writeVersions } from "../../src/rollout/versions.ts";
import { listenAt } from "../harness/listen.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { sampleRequest } from "./sample.ts";

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

/** Works that begin and end when the test says so. */
function watched() {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const work = (name: string) => () => {
    begun.push(name);
    return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
  };
  const end = async (name: string) => {
    ends.get(name)?.();
    await new Promise(setImmediate);
  };
  return { begun, work, end };
}

test("works begin as long as there is room, in the order in which they came", async () => {
  const { begun, work, end } = watched();
  const { shared } = createSemaphore(2);
  for (const name of ["a", "b", "c"]) void shared(work(name));
  await end("none");
  assert.deepEqual(begun, ["a", "b"]);
  await end("b");
  assert.deepEqual(begun, ["a", "b", "c"]);
});

test("a work alone waits for the others, and they wait for it", async () => {
  const { begun, work, end } = watched();
  const { shared, exclusive } = createSemaphore(9);
  void shared(work("a"));
  void exclusive(work("proxy"));
  void shared(work("b"));
  await end("none");
  assert.deepEqual(begun, ["a"]);
  await end("a");
  assert.deepEqual(begun, ["a", "proxy"]);
  await end("proxy");
  assert.deepEqual(begun, ["a", "proxy", "b"]);
});

test("a work that fails gives its turn to the next", async () => {
  const { exclusive } = createSemaphore(1);
  await assert.rejects(
    exclusive(async () => Promise.reject(new Error("sick"))),
    /sick/,
  );
  assert.equal(await exclusive(async () => "good"), "good");
});

const ended = (code: number): CommandEnding => ({ kind: "exited", code, output: "", lastLines: [] });

/** Runs of compose that fail if `sick` is among their services. */
function watchedRuns(sick?: string) {
  const runs: string[][] = [];
  const start = startInSharedRuns(async (scales) => {
    const services = scales.map(({ service }) => service);
    runs.push(services);
    return ended(sick !== undefined && services.includes(sick) ? 1 : 0);
  });
  const startAll = (...services: readonly string[]) =>
    Promise.all(services.map((service) => start({ service, count: 2 })));
  return { runs, startAll };
}

test("services that start at the same moment share one run of compose", async () => {
  const { runs, startAll } = watchedRuns();
  await startAll("app", "api", "worker");
  assert.deepEqual(runs, [["app", "api", "worker"]]);
});

test("services that come during a run share the next one", async () => {
  const runs: string[][] = [];
  const late: Promise<CommandEnding>[] = [];
  const start = startInSharedRuns(async (scales) => {
    runs.push(scales.map(({ service }) => service));
    if (runs.length === 1) for (const service of ["api", "worker"]) late.push(start({ service, count: 2 }));
    await new Promise(setImmediate);
    return ended(0);
  });
  await start({ service: "app", count: 2 });
  await Promise.all(late);
  assert.deepEqual(runs, [["app"], ["api", "worker"]]);
});

test("if a shared run fails, each has a run of its own, and only the sick one fails", async () => {
  const { runs, startAll } = watchedRuns("api");
  assert.deepEqual(await startAll("app", "api"), [ended(0), ended(1)]);
  assert.deepEqual(runs, [["app", "api"], ["app"], ["api"]]);
});

test("a fault of a run reaches all who share it", async () => {
  const start = startInSharedRuns(async () => Promise.reject(new Error("interrupted")));
  const shared = ["app", "api"].map((service) => start({ service, count: 2 }));
  for (const { status } of await Promise.allSettled(shared)) assert.equal(status, "rejected");
});
