import assert from "node:assert/strict";
import { test } from "node:test";
import type { SetupService, SetupServices } from "../../src/init/compose-services.ts";
import { candidates, findReverseProxy, type ReverseProxy } from "../../src/init/reverse-proxy.ts";

/** SetupServices as compose prints them: `8080:3000`, `127.0.0.1:8080:3000`. */
function service(ports: readonly string[], more: SetupService = {}): SetupService {
  const list = ports.map((text) => {
    const [target = "", published = "", host_ip] = text.split(":").toReversed();
    return {
      target: Number(target),
      published,
      protocol: "tcp",
      ...(host_ip === undefined ? {} : { host_ip }),
    };
  });
  return { ports: list, networks: { default: null }, ...more };
}

function added(services: SetupServices, wanted?: string): Extract<ReverseProxy, { kind: "new-caddy" }> {
  const proxy = findReverseProxy(services, wanted);
  assert.ok(proxy.kind === "new-caddy", proxy.kind);
  return proxy;
}

test("Caddy takes over the port of the only service that publishes one", () => {
  const proxy = added({ web: service(["8080:3000"]), worker: service([]) });
  assert.deepEqual(
    [proxy.service, proxy.target, proxy.published, proxy.dropped],
    ["web", 3000, [{ address: "", port: 8080 }], []],
  );
});

test("a database is never the app: its image or its data shows it", () => {
  const data = { volumes: [{ type: "volume", target: "/var/lib/postgresql/data" }] };
  const services = {
    db: service(["5432:5432"], { image: "postgres:17" }),
    own: service(["5433:5432"], { image: "acme/db", ...data }),
    web: service(["9999:9999"]),
  };
  assert.deepEqual(candidates(services), ["web"]);
});

test("the usual port of a web page comes first, and a person can choose another", () => {
  const services = { admin: service(["9090:9090"]), api: service(["8000:8000"]), web: service(["80:3000"]) };
  assert.deepEqual(candidates(services), ["web", "api", "admin"]);
  assert.equal(added(services).service, "web");
  assert.equal(added(services, "api").service, "api");
});

test("ports that are not the web page's are dropped and reported", () => {
  const proxy = added({ web: service(["127.0.0.1:9229:9229", "127.0.0.1:8080:3000", "8081:3000"]) });
  assert.deepEqual(proxy.published, [
    { address: "127.0.0.1", port: 8080 },
    { address: "", port: 8081 },
  ]);
  assert.deepEqual(proxy.dropped, [9229]);
});

for (const [what, kind, name, own] of [
  ["Caddy", "caddy", "edge", { image: "caddy:2-alpine" }],
  ["Traefik", "traefik", "edge", { image: "traefik:v3.4" }],
  ["nginx", "other-proxy", "edge", { image: "nginx:1.29" }],
  ["a proxy that is built", "other-proxy", "nginx", { build: "." }],
  ["Caddy with docker labels", "other-proxy", "edge", { image: "lucaslorentz/caddy-docker-proxy:2" }],
] as const) {
  test(`${what} in front of the app stays as it is`, () => {
    const proxy = findReverseProxy({ [name]: service(["80:80", "443:443"], own), web: service([]) });
    assert.deepEqual(proxy, { kind, service: name, services: ["web"], networks: [] });
  });
}

test("an nginx beside databases only serves the page itself", () => {
  const services = {
    web: service(["80:80"], { image: "nginx:1.29" }),
    db: service([], { image: "redis:8" }),
  };
  assert.equal(added(services).service, "web");
});

test("an app with its own certificates stays as it is", () => {
  assert.equal(findReverseProxy({ web: service(["443:8443"]) }).kind, "other-proxy");
});

test("if no port is published, there is no proxy", () => {
  const none = { worker: service([]), dns: { ports: [{ target: 53, published: "53", protocol: "udp" }] } };
  assert.equal(findReverseProxy(none).kind, "none");
});

test("Caddy joins the networks of the app, unless it has only the default one", () => {
  assert.deepEqual(added({ web: service(["80:80"]) }).networks, []);
  const proxy = added({ web: service(["80:80"], { networks: { backend: null } }) });
  assert.deepEqual(proxy.networks, ["default", "backend"]);
});
