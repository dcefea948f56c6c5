import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { LiveDirectory, Rollout } from "../../src/rollout/context.ts";
import type { RolloutEvent } from "../../src/rollout/report.ts";
import {
  countingFile,
  createTally,
  followLog,
  readLoggedRequest,
  withRequestsCounted,
} from "../../src/rollout/requests.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { fakeCaddy, liveDirectory } from "./fake-caddy.ts";

const line = `${JSON.stringify({ status: 200, answered: 200, request: { host: "a" }, upstream: "shop-app-1:80" })}\n`;

test("on the server, the log is out of reach of the projects", async (t) => {
  const { rollout, events, live } = await rolloutWith(t, "/run/live/.requests/shop.log", "shop");
  const log = join(dirname(live.path), ".requests", "shop.log");
  mkdirSync(dirname(log));
  await withRequestsCounted(rollout, async () => appendFileSync(log, line));
  const [event] = events;
  assert.ok(event?.event === "requests");
  assert.equal(event.sites?.[0]?.requests, 1);
});

test("the log of another project on the server is not this one's", async (t) => {
  const { rollout, events } = await rolloutWith(t, "/run/live/.requests/blog.log", "shop");
  await withRequestsCounted(rollout, async () => {});
  assert.deepEqual(events, [{ event: "requests", sites: null, missingLines: [] }]);
});

test("a count that is not possible changes nothing", async (t) => {
  const { rollout, events, live } = await rolloutWith(t, "/run/live/.requests.log");
  mkdirSync(join(live.path, countingFile));
  assert.equal(await withRequestsCounted(rollout, async () => "done"), "done");
  assert.match(JSON.stringify(events), /the requests cannot be counted: EISDIR/);
});

/** A roll-out of a project whose Caddy logs requests to `output`. */
async function rolloutWith(t: TestContext, output: string, project: string | null = null) {
  const live: LiveDirectory = liveDirectory(t, project);
  await fakeCaddy(t, live, () => ({ logs: { log0: { writer: { filename: output } } } }));
  const events: RolloutEvent[] = [];
  const none = async () => Buffer.from("[]");
  const rollout: Pick<Rollout, "engine" | "project" | "liveDirectory" | "liveFilesRead" | "report"> = {
    engine: { get: none, post: none, delete: none },
    project: { name: "shop", services: [] },
    liveDirectory: live,
    liveFilesRead: new Set(["app"]),
    report: (event) => events.push(event),
  };
  return { rollout, events, live };
}

test("what comes after the start is read by whole lines, also from a new log", async (t) => {
  const path = logIn(t);
  writeFileSync(path, "before\n");
  const log = await followLog(path);
  appendFileSync(path, "one\ntw");
  assert.deepEqual(await log.read(), ["one"]);
  appendFileSync(path, "o\n");
  assert.deepEqual(await log.read(), ["two"]);
  appendFileSync(path, "old\n");
  renameSync(path, `${path}.1`);
  writeFileSync(path, "new\n");
  assert.deepEqual(await log.read(), ["old", "new"]);
  const lines = Array.from({ length: 20_000 }, (_, index) => `ü ${index} ${"x".repeat(40)}`);
  appendFileSync(path, `${lines.join("\n")}\n`);
  assert.deepEqual(await log.read(), lines, "whatever characters the pieces cut");
  await log.close();
});

test("a log that does not exist yet is read from its beginning", async (t) => {
  const path = logIn(t);
  const log = await followLog(path);
  assert.deepEqual(await log.read(), []);
  writeFileSync(path, "first\n");
  assert.deepEqual(await log.read(), ["first"]);
  await log.close();
});

function logIn(t: TestContext): string {
  return join(temporaryDirectory(t), "requests.log");
}

/** A line as Caddy 2.11.4 writes it. */
function requestLine(fields: object, host: string = "Shop.example.org:8443"): string {
  const request = { proto: "HTTP/2.0", method: "GET", host };
  return JSON.stringify({ level: "info", ts: 1, msg: "handled request", request, size: 2, ...fields });
}

const answered = (status: number, container = "shop-app-1") =>
  requestLine({ status, answered: status, upstream: `${container}:8080` });

test("each ending of a request is known by Caddy's line", () => {
  const upstream = "shop-app-1:8080";
  const outcomes: readonly (readonly [line: string, outcome: string])[] = [
    [answered(200), "answered"],
    [answered(404), "answered"],
    [answered(502), "server error"],
    [requestLine({ status: 502, answered: null, upstream }), "failed"],
    [answered(200, "app.shop.containers.internal"), "answered"],
    [requestLine({ status: 200 }), "broke off"],
    [requestLine({ status: 200, answered: null, upstream: "nobody.invalid:8080" }), "broke off"],
    [requestLine({ status: 413, answered: null, upstream }), "answered"],
    [requestLine({ status: 200, answered: null, upstream: null }), "answered"],
    [requestLine({ status: 0, answered: null, upstream }), "left"],
    [requestLine({ status: 499, answered: null, upstream }), "left"],
  ];
  for (const [text, outcome] of outcomes) assert.equal(readLoggedRequest(text)?.outcome, outcome, text);
});

test("answers are those of the version whose container gave them", () => {
  const tally = createTally((container) => container === "shop-app-2");
  for (const text of [
    answered(200),
    answered(500),
    answered(200, "shop-app-2"),
    requestLine({ status: 502, answered: null }),
  ])
    tally.add(text);
  assert.deepEqual(tally.sites(), [
    {
      host: "shop.example.org",
      requests: 4,
      failed: 1,
      brokeOff: 0,
      left: 0,
      before: { answers: 2, serverErrors: 1 },
      after: { answers: 1, serverErrors: 0 },
    },
  ]);
});

test("hosts are counted without port and case, and an address of IPv6 keeps its colons", () => {
  const tally = createTally(() => false);
  for (const host of ["a:80", "A", "[::1]:80", "[::1]"]) tally.add(requestLine({ status: 200 }, host));
  assert.deepEqual(
    tally.sites().map(({ host, requests }) => [host, requests]),
    [
      ["a", 2],
      ["[::1]", 2],
    ],
  );
});

test("invented hosts do not make the list longer than twenty", () => {
  const tally = createTally(() => false);
  for (let number = 0; number < 1_000; number += 1)
    tally.add(requestLine({ status: 200, answered: 200 }, `h${number}`));
  const sites = tally.sites();
  assert.equal(sites.length, 21);
  assert.deepEqual([sites.at(-1)?.host, sites.at(-1)?.requests], ["other hosts", 980]);
});
