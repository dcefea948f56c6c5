import assert from "node:assert/strict";
import { test } from "node:test";
import type { SetupServices } from "../../../src/init/compose-services.ts";
import { noChoices, parsePlace } from "../../../src/init/upstreams/choices.ts";
import { planUpstreams } from "../../../src/init/upstreams/plan.ts";
import type { UpstreamOptions } from "../../../src/init/upstreams/upstream.ts";
import { corpus, corpusOptions } from "../corpus.ts";

function shape(name: string): SetupServices {
  return corpus.find((one) => one.name === name)?.services ?? assert.fail(name);
}

/** Where the ports of a shape end: `service:port place`, and `service:port stays`. */
function ends(services: SetupServices, more: Partial<UpstreamOptions> = {}, ...at: readonly string[]) {
  const places = at.map((text) => parsePlace(text) ?? assert.fail(text));
  const options = { ...corpusOptions, choices: { ...noChoices, places }, ...more };
  const { upstreams, left } = planUpstreams(services, options);
  return [
    ...upstreams.map(({ service, port, place }) =>
      place.kind === "name"
        ? `${service}:${port} ${place.name}`
        : `${service}:${port} ${place.address}:${place.port}`,
    ),
    ...left.map(({ endpoint }) => `${endpoint.service}:${endpoint.port} stays`),
  ];
}

test("without a host name, each page keeps its port, on Caddy", () => {
  assert.deepEqual(ends(shape("monorepo"), { name: null }), [
    "web:3000 :3000",
    "admin:3002 :3002",
    "api:3001 :3001",
  ]);
});

test("a port that Caddy has for another project is not taken twice", () => {
  const more = { name: null, takenPorts: [80, 443, 8080, 2368] };
  assert.deepEqual(ends(shape("ghost"), more), ["ghost:2368 :8081"]);
});

test("at an address of the machine, only the main page can have it", () => {
  const more = { name: "203.0.113.5" };
  assert.deepEqual(ends(shape("adminer"), more), ["app:4000 203.0.113.5", "adminer:8080 :8080"]);
});

test("behind another proxy of the machine, Caddy takes over the ports as they are", () => {
  const more = { isCaddyPublic: false };
  assert.deepEqual(ends(shape("mastodon"), more), [
    "web:3000 127.0.0.1:3000",
    "streaming:4000 127.0.0.1:4000",
  ]);
});

test("a person can choose the main service, and every place", () => {
  assert.deepEqual(ends(shape("two-web-apps"), { main: "store" }), [
    "store:8000 app.example.org",
    "blog:8000 blog.app.example.org",
  ]);
  assert.deepEqual(ends(shape("monorepo"), {}, "admin=app.example.org", "api=:3001", "web=none"), [
    "admin:3002 app.example.org",
    "api:3001 :3001",
    "web:3000 stays",
  ]);
});

test("a port that was in doubt, or is not published, can be chosen", () => {
  assert.deepEqual(ends(shape("game-with-map"), {}, "valheim:9001=map.example.org").slice(0, 1), [
    "valheim:9001 map.example.org",
  ]);
  assert.deepEqual(ends(shape("unpublished"), {}, "app=app.example.org"), ["app:3000 app.example.org"]);
  assert.deepEqual(ends(shape("worker"), {}, "worker:5000=w.example.org"), ["worker:5000 w.example.org"]);
});

test("a tool for this machine only gets a port of Caddy's own if a person wants that, bound as before", () => {
  assert.deepEqual(ends(shape("adminer-private"), {}, "adminer=:8080"), [
    "app:4000 app.example.org",
    "adminer:8080 127.0.0.1:8080",
  ]);
});

test("a proxy with certificates can be chosen as an upstream", () => {
  const plan = ends(shape("nginx-tls"), {}, "nginx:80=app.example.org");
  assert.deepEqual(plan, ["nginx:80 app.example.org"]);
});

for (const [name, at, says] of [
  [
    "a service that does not exist",
    "wbe=:80",
    /^wbe is not a service of your compose file\. Those are: admin, api, web\.$/,
  ],
  ["a name twice", "admin=www.example.org api=www.example.org", /cannot both be at www\.example\.org/],
  ["a port that Caddy has", "admin=:443", /^Caddy has port 443 already/],
] as const) {
  test(`--at with ${name} is refused`, () => {
    assert.throws(() => ends(shape("monorepo"), {}, ...at.split(" ")), { message: says });
  });
}

test("a service without a known port must be named with one", () => {
  assert.throws(() => ends(shape("worker"), {}, "worker=w.example.org"), {
    message: /^Which port of worker/,
  });
});

test("a main service that publishes nothing with HTTP is refused", () => {
  assert.throws(() => ends(shape("adminer"), { main: "db" }), {
    message: /^db publishes no port that speaks HTTP/,
  });
});

test("a port 443 that does not speak HTTP is refused, because Caddy needs it", () => {
  const vpn = { image: "openvpn", ports: [{ target: 1194, published: "443", protocol: "tcp" }] };
  assert.throws(() => ends({ vpn }), { message: /^vpn publishes port 443, which Caddy needs/ });
});

test("an app whose image is unknown and that publishes 443 has certificates of its own", () => {
  const ports = ["80", "443"].map((published) => ({ target: Number(published), published, protocol: "tcp" }));
  assert.equal(planUpstreams({ web: { build: ".", ports } }, corpusOptions).ownProxy, "web");
});
