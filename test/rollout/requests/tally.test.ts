import assert from "node:assert/strict";
import { test } from "node:test";
import { createTally, hostOf, readLoggedRequest } from "../../../src/rollout/requests/tally.ts";

/** A line as Caddy 2.11.4 writes it. */
function line(fields: object, host: string = "Shop.example.org:8443"): string {
  const request = { proto: "HTTP/2.0", method: "GET", host };
  return JSON.stringify({ level: "info", ts: 1, msg: "handled request", request, size: 2, ...fields });
}

const answered = (status: number, container = "shop-app-1") =>
  line({ status, answered: status, upstream: `${container}:8080` });

test("each ending of a request is known by Caddy's line", () => {
  const outcomes = {
    good: answered(200),
    notFound: answered(404),
    "the app's own 502": answered(502),
    "Caddy's 502": line({ status: 502, answered: null, upstream: "shop-app-1:8080" }),
    "sent on and answered": answered(200, "app.shop.containers.internal"),
    "cut off": line({ status: 200 }),
    "sent on and cut off": line({ status: 200, answered: null, upstream: "nobody.invalid:8080" }),
    "refused by Caddy as too large": line({ status: 413, answered: null, upstream: "shop-app-1:8080" }),
    "answered by Caddy itself": line({ status: 200, answered: null, upstream: null }),
    "left before the answer": line({ status: 0, answered: null, upstream: "shop-app-1:8080" }),
    "the same in later versions": line({ status: 499, answered: null, upstream: "shop-app-1:8080" }),
  };
  const kinds = Object.values(outcomes).map((text) => readLoggedRequest(text)?.outcome);
  const whole = { kind: "answered", isServerError: false };
  assert.deepEqual(kinds, [
    whole,
    whole,
    { kind: "answered", isServerError: true },
    { kind: "failed" },
    whole,
    { kind: "cut off" },
    { kind: "cut off" },
    whole,
    whole,
    { kind: "left" },
    { kind: "left" },
  ]);
});

test("a line that is about no request, or is half written, does not count", () => {
  for (const text of ["", "{", '{"level":"info","msg":"started"}', '{"status":200}'])
    assert.equal(readLoggedRequest(text), null);
});

test("answers are those of the version whose container gave them", () => {
  const tally = createTally((container) => container === "shop-app-2");
  for (const text of [
    answered(200),
    answered(500),
    answered(200, "shop-app-2"),
    line({ status: 502, answered: null }),
  ])
    add(tally, text);
  assert.deepEqual(
    tally.sites(() => 0),
    [
      {
        ...{ host: "shop.example.org", requests: 4, failed: 1, brokeOff: 0, left: 0 },
        before: { answers: 2, serverErrors: 1 },
        after: { answers: 1, serverErrors: 0 },
      },
    ],
  );
});

test("of the requests that were cut off, those of clients that left did not fail", () => {
  const tally = createTally(() => false);
  for (let count = 0; count < 5; count += 1) add(tally, line({ status: 200 }));
  add(tally, line({ status: 0, answered: null }));
  const [site] = tally.sites((host) => (host === "shop.example.org" ? 3 : 9));
  assert.deepEqual([tally.cutOff(), site?.failed, site?.brokeOff, site?.left], [5, 2, 2, 4]);
  assert.equal(tally.sites(() => 99)[0]?.failed, 0, "a warning of a request before the count");
});

test("invented hosts do not make the list longer than twenty", () => {
  const tally = createTally(() => false);
  for (let number = 0; number < 1_000; number += 1)
    add(tally, line({ status: 200, answered: 200 }, `h${number}`));
  const sites = tally.sites(() => 0);
  assert.equal(sites.length, 21);
  assert.deepEqual([sites.at(-1)?.host, sites.at(-1)?.requests], ["other hosts", 980]);
});

test("a host has no port, and an address of IPv6 keeps its colons", () => {
  assert.deepEqual(["a:80", "A", "[::1]:80", "[::1]"].map(hostOf), ["a", "a", "[::1]", "[::1]"]);
});

function add(tally: ReturnType<typeof createTally>, text: string): void {
  const request = readLoggedRequest(text);
  assert.ok(request);
  tally.add(request);
}
