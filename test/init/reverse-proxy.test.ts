import assert from "node:assert/strict";
import { test } from "node:test";
import type { Services, SetupService } from "../../src/init/compose-services.ts";
import { candidates, type Front, findFront } from "../../src/init/reverse-proxy.ts";

/** Services in the form in which compose gives them: `8080:3000`, `127.0.0.1:8080:3000`. */
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

function added(services: Services, wanted?: string): Extract<Front, { kind: "new-caddy" }> {
  const front = findFront(services, wanted);
  assert.ok(front.kind === "new-caddy", front.kind);
  return front;
}

test("Caddy takes the place of the one service that publishes a port", () => {
  const front = added({ web: service(["8080:3000"]), worker: service([]) });
  assert.deepEqual(
    [front.service, front.target, front.published, front.dropped],
    ["web", 3000, [{ address: "", port: 8080 }], []],
  );
});

test("a database is never taken for the app, by its image or by its data", () => {
  const data = { volumes: [{ type: "volume", target: "/var/lib/postgresql/data" }] };
  const services = {
    db: service(["5432:5432"], { image: "postgres:17" }),
    own: service(["5433:5432"], { image: "acme/db", ...data }),
    web: service(["9999:9999"]),
  };
  assert.deepEqual(candidates(services), ["web"]);
});

test("of several the usual port of a page comes first, and a person can say another", () => {
  const services = { admin: service(["9090:9090"]), api: service(["8000:8000"]), web: service(["80:3000"]) };
  assert.deepEqual(candidates(services), ["web", "api", "admin"]);
  assert.equal(added(services).service, "web");
  assert.equal(added(services, "api").service, "api");
});

test("ports that are not the page's are given up, and said", () => {
  const front = added({ web: service(["127.0.0.1:9229:9229", "127.0.0.1:8080:3000", "8081:3000"]) });
  assert.deepEqual(front.published, [
    { address: "127.0.0.1", port: 8080 },
    { address: "", port: 8081 },
  ]);
  assert.deepEqual(front.dropped, [9229]);
});

for (const [what, kind, name, proxy] of [
  ["Caddy", "caddy", "edge", { image: "caddy:2-alpine" }],
  ["Traefik", "traefik", "edge", { image: "traefik:v3.4" }],
  ["nginx", "other-proxy", "edge", { image: "nginx:1.29" }],
  ["a proxy that is built", "other-proxy", "nginx", { build: "." }],
  ["Caddy with docker labels", "other-proxy", "edge", { image: "lucaslorentz/caddy-docker-proxy:2" }],
] as const) {
  test(`${what} before the app is left as it is`, () => {
    const front = findFront({ [name]: service(["80:80", "443:443"], proxy), web: service([]) });
    assert.deepEqual(front, { kind, service: name, services: ["web"], networks: [] });
  });
}

test("an nginx that is all there is serves the page itself", () => {
  const services = {
    web: service(["80:80"], { image: "nginx:1.29" }),
    db: service([], { image: "redis:8" }),
  };
  assert.equal(added(services).service, "web");
});

test("an app with certificates of its own is left as it is", () => {
  assert.equal(findFront({ web: service(["443:8443"]) }).kind, "other-proxy");
});

test("where nothing is published, there is nothing to take the place of", () => {
  const none = { worker: service([]), dns: { ports: [{ target: 53, published: "53", protocol: "udp" }] } };
  assert.equal(findFront(none).kind, "none");
});

test("the networks of the app are Caddy's too, but not where it is the default one", () => {
  assert.deepEqual(added({ web: service(["80:80"]) }).networks, []);
  const front = added({ web: service(["80:80"], { networks: { backend: null } }) });
  assert.deepEqual(front.networks, ["default", "backend"]);
});
