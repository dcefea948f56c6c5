import "../harness/environment.ts";
import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import {
  badAnswerOf,
  checkThroughProxy,
  drain,
  pollUntilGood,
  requestsInFlight,
  switchLiveFiles,
} from "../../src/rollout/switch-traffic.ts";
import { listenHere } from "../harness/listen.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { fakeCaddy, liveDirectory, sampleRollout, sampleService } from "./sample.ts";

test("a switch replaces the file: who reads the old one meanwhile gets its whole name", async (t) => {
  const directory = temporaryDirectory(t);
  await switchLiveFiles(directory, "app", ["shop-app-1"]);
  const before = openSync(join(directory, "app"), "r");
  t.after(() => closeSync(before));
  await switchLiveFiles(directory, "app", ["shop-app-2"]);
  const seen = [before, join(directory, "app")].map((file) => readFileSync(file, "utf8"));
  assert.deepEqual(seen, ["shop-app-1", "shop-app-2"]);
});

const requests = (host: string, num_requests: number) => ({ address: `${host}:8080`, num_requests });

/**
 * Of the project shop on the server, whose service web was just switched from shop-web-1 to shop-web-2: what Caddy counts of each
 * upstream; one with a slash is a live file.
 */
const inFlight: readonly (readonly [claim: string, expected: number, counts: string])[] = [
  [
    "requests to another project's service of the same name do not count",
    3,
    "blog/web 7, blog-web-1 4, web.blog.containers.internal 2, shop/web 5, shop-web-1 3, shop-web-2 2",
  ],
  [
    "before Caddy 2.11.2, own requests of unknown containers may be the old one's",
    2,
    "blog/web 7, shop/api 6, shop/web 1, shop/web.2 1, grafana 3",
  ],
  [
    "requests that went to the service's name on the server may be at any container",
    5,
    "shop/web 2, shop-web-2 1, web.shop.containers.internal 4",
  ],
];

for (const [claim, expected, counts] of inFlight)
  test(claim, async (t) => {
    const live = liveDirectory(t, "shop");
    writeFileSync(join(live.path, "web"), "shop-web-2");
    const upstreams = counts.split(", ").map((text) => {
      const [name = "", count] = text.split(" ");
      return requests(name.includes("/") ? `{file./run/live/${name}}` : name, Number(count));
    });
    await fakeCaddy(t, live, () => upstreams);
    assert.equal(await requestsInFlight(live, "web", ["shop-web-1"]), expected);
  });

/** Answers with each of `statuses` in turn, then with the last for ever. */
async function site(t: TestContext, statuses: readonly number[]): Promise<string> {
  const rest = [...statuses];
  const server = createServer((_, response) => {
    const status = (rest.length > 1 ? rest.shift() : rest[0]) ?? 200;
    response.writeHead(status).end();
  });
  return `http://127.0.0.1:${await listenHere(t, server)}/`;
}

test("a site is good after six good answers in a row, and bad after five bad ones", async (t) => {
  const { signal } = new AbortController();
  const poll = (url: string) => pollUntilGood(() => badAnswerOf(url), signal);
  assert.equal(await poll(await site(t, [200, 503, 200, 200, 503, 200])), null);
  assert.equal(await poll(await site(t, [500])), "status 500");
  const unheard = (await site(t, [200])).replace(/\d+\/$/, "1/");
  assert.match(String(await poll(unheard)), /ECONNREFUSED/);
  const stopped = pollUntilGood(async () => "bad", AbortSignal.abort(), {
    mostBad: Number.POSITIVE_INFINITY,
  });
  await assert.rejects(stopped, { name: "AbortError" });
});

test("a new version whose first answer times out at its site is asked again", async (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  let asked = 0;
  const worseAnswerOf = async () => {
    asked += 1;
    nowMs += asked === 1 ? 10_001 : 1;
    return asked === 1 ? "no answer" : null;
  };
  const on = { ...sampleRollout(temporaryDirectory(t)), service: sampleService() };
  await checkThroughProxy(on, [], undefined, { url: "http://a.test/", worseAnswerOf });
  assert.equal(asked, 2);
});

/** What a drain of shop-app-1 ends with if Caddy gives these counts in turn; the last one for ever. */
async function drainOf(t: TestContext, counts: readonly unknown[], timeoutMs = 60_000) {
  const rest = [...counts];
  const live = liveDirectory(t);
  await fakeCaddy(t, live, () => (rest.length > 1 ? rest.shift() : rest[0]));
  writeFileSync(join(live.path, "app"), "shop-app-2");
  return drain(live, { name: "app", drainTimeoutMs: timeoutMs }, ["shop-app-1"]);
}

const old = (count: number) => [requests("shop-app-1", count), requests("shop-app-2", 70)];
test("a drain ends when two counts in a row are zero, or at its limit", async (t) => {
  assert.equal(await drainOf(t, [old(3), old(1), old(0)]), 0);
  assert.equal(await drainOf(t, [old(0), old(2), old(0), old(0), old(9)]), 0);
  assert.equal(await drainOf(t, [null]), 0, "an upstream that Caddy no longer lists");
  assert.equal(await drainOf(t, [old(2)], 100), 2);
});

test("a drain that is aborted does not report the requests in flight", async (t) => {
  for (const count of [2, 0]) {
    const goesBack = new AbortController();
    const live = liveDirectory(t);
    await fakeCaddy(t, live, () => {
      goesBack.abort();
      return old(count);
    });
    const forever = { name: "app", drainTimeoutMs: 600_000 };
    const ended = await drain(live, forever, ["shop-app-1"], goesBack.signal);
    assert.equal(ended, "given up");
  }
});

test("without an answer from Caddy, a drain waits as long as the label says", async (t) => {
  const startedMs = performance.now();
  const ended = await drain(liveDirectory(t), { name: "app", drainTimeoutMs: 300 }, ["shop-app-1"]);
  assert.equal(ended, "blind");
  assert.ok(performance.now() - startedMs >= 300);
});
