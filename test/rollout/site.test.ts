import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type TestContext, test } from "node:test";
import type { LoggedRequest, RequestCount } from "../../src/rollout/context.ts";
import { askOldVersion, placesOf } from "../../src/rollout/site.ts";
import { listenHere } from "../harness/listen.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import {
  engineWith,
  fakeCaddy,
  liveDirectory,
  sampleContainer,
  sampleRollout,
  sampleService,
} from "./sample.ts";

const live = { path: "/run/live/shop", adminSocket: "/run/live/admin.sock", project: "shop" };
const proxy = (file: string) => ({ upstreams: [{ dial: `{file./run/live/${file}}:8080` }] });
/** As Caddy nests what it reads from a Caddyfile. */
const site = (host: readonly string[], ...routes: readonly object[]) => ({
  ...(host.length > 0 && { match: [{ host }] }),
  handle: [{ handler: "subroute", routes }],
});
const configOf = (servers: object) => ({ apps: { http: { servers } } });

test("a request of ours goes where Caddy takes those of users", () => {
  const web = { handle: [proxy("shop/web")] };
  const api = { match: [{ path: ["/api/*"] }], handle: [{ routes: [{ handle: [proxy("shop/web.2")] }] }] };
  const other = { handle: [proxy("blog/web"), proxy("shop/worker")] };
  const cases: readonly (readonly [servers: object, host: string, url: string])[] = [
    [
      { listen: [":80"], routes: [site(["a.test"], other), site(["b.test"], web)] },
      "b.test",
      "http://b.test/",
    ],
    [{ listen: [":443"], routes: [site(["b.test"], api)] }, "b.test", "https://b.test/api/"],
    [{ listen: [":443"], routes: [site(["*.b.test"], web)] }, "www.b.test", "https://www.b.test/"],
    [{ listen: [":8080"], routes: [web] }, "localhost", "http://localhost:8080/"],
    [
      { listen: [":8081"], automatic_https: { skip: ["b.test"] }, routes: [site(["b.test"], web)] },
      "b.test",
      "http://b.test:8081/",
    ],
    [
      { listen: [":8443"], tls_connection_policies: [{}], routes: [web] },
      "localhost",
      "https://localhost:8443/",
    ],
  ];
  for (const [server, host, url] of cases)
    assert.deepEqual(placesOf(live, "web", configOf({ srv0: server })), [{ host, url }]);
});

test("a service that no site reads a live file of gets no request", () => {
  for (const config of [
    null,
    {},
    configOf({ srv0: { listen: [":80"], routes: [{ handle: [proxy("shop/web")] }] } }),
  ])
    assert.deepEqual(placesOf(live, "api", config), []);
});

const [old, fresh] = [sampleContainer(), sampleContainer({ number: 2 })];
type Outcome = LoggedRequest["outcome"];
/** An answer: its status, and what Caddy logs of it, if it logs requests. */
type Scripted = readonly [status: number, container?: string | null, outcome?: Outcome];

/** A roll-out whose Caddy has the site of app at `port`, and these addresses. */
async function rolloutBehind(t: TestContext, port: number, addresses: readonly string[]) {
  const directedBy = liveDirectory(t);
  const routes = [site(["b.test"], { handle: [proxy("app")] })];
  await fakeCaddy(t, directedBy, () => ({
    apps: { http: { http_port: port, servers: { a: { listen: [`:${port}`], routes } } } },
  }));
  const networks = addresses.map((IPAddress, index) => [`net${index}`, { IPAddress }]);
  const NetworkSettings = { Networks: Object.fromEntries(networks) as object };
  const Mounts = [{ Type: "bind", Destination: "/run/live", RW: true }];
  const inspected = {
    Name: "/x",
    Config: { Labels: {} },
    State: { Status: "running" },
    NetworkSettings,
    Mounts,
  };
  const engine = engineWith((path) =>
    path.includes("/json?") ? [{ Id: "caddy" }] : { ...inspected, Id: path.split("/")[2] },
  );
  return { ...sampleRollout(temporaryDirectory(t)), engine, directedBy, service: sampleService() };
}

/** The worse answer of the new version, null if it is as good; "unasked": the old one gave none. */
async function judgedAt(t: TestContext, before: Scripted, after: Scripted) {
  const asked: IncomingMessage[] = [];
  const port = await listenHere(
    t,
    createServer((request, response) => {
      const [status, container] = asked.push(request) === 1 ? before : after;
      // Caddy names itself only in what it passes on.
      response.writeHead(status, container === "by Caddy" ? {} : { via: "1.1 Caddy" }).end();
    }),
  );
  const requestCount: RequestCount = {
    to: () => assert.fail(),
    isBlind: () => false,
    leaveOut: (authority) => async () => {
      const [, container = null, outcome = "answered"] = asked.length === 1 ? before : after;
      return { authority, host: "b.test", container, outcome, durationMs: 1 };
    },
  };
  const isLogged = before.length > 1 && before[1] !== "by Caddy";
  const on = {
    ...(await rolloutBehind(t, port, ["127.0.0.1"])),
    requestCount: isLogged ? requestCount : null,
  };
  const found = await askOldVersion(on, [old]);
  if (found === null) return "unasked";
  const worse = await found.worseAnswerOf([fresh], on.signal);
  assert.match(asked.at(-1)?.headers.host ?? "", /^b\.test:\d{5}$/);
  return worse;
}

test("a new version passes with an answer of its own below 500, or where the old one had none", async (t) => {
  const ok = [200, old.name] as const;
  const cases: readonly (readonly [before: Scripted, after: Scripted, worse: RegExp | string | null])[] = [
    [ok, [302, fresh.name], null],
    [ok, [401, fresh.name], null],
    [ok, [500, fresh.name, "server error"], /^status 500; of the old version: status 200$/],
    [ok, [200, old.name], /^status 200 from shop-app-1;/],
    [ok, [502, fresh.name, "failed"], /^status 502 from Caddy;/],
    // The site of a service has its own name before the first roll-out.
    [[200, "app"], [200, fresh.name], null],
    [[500, old.name, "server error"], [500, fresh.name, "server error"], null],
    [[500, old.name, "server error"], [502, fresh.name, "failed"], /^status 502 from Caddy;/],
    [[502, old.name, "failed"], [502, fresh.name, "failed"], "unasked"],
    // Caddy answers by itself, as with a password.
    [[401, null], [401, null], "unasked"],
    [[200], [404], null],
    [[500], [502, "by Caddy"], /^status 502 from Caddy;/],
  ];
  for (const [before, after, worse] of cases) {
    const judged = await judgedAt(t, before, after);
    if (worse instanceof RegExp) assert.match(judged ?? "", worse);
    else assert.equal(judged, worse, `${after} after ${before}`);
  }
});

test("addresses of Caddy that never answer keep none waiting that does", async (t) => {
  const silent = createServer(() => {});
  const port = await listenHere(t, silent);
  const served = createServer((_, response) => response.writeHead(200, { via: "1.1 Caddy" }).end());
  await once(served.listen(port, "127.0.0.2"), "listening");
  t.after(() => served.close());
  const startedMs = performance.now();
  const on = await rolloutBehind(t, port, ["127.0.0.1", "127.0.0.1", "127.0.0.2"]);
  const found = await askOldVersion(on, [old]);
  assert.equal(await found?.worseAnswerOf([fresh], on.signal), null);
  assert.ok(performance.now() - startedMs < 8_000);
});
