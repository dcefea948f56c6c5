import assert from "node:assert/strict";
import { test } from "node:test";
import { placesOf } from "../../src/rollout/site.ts";

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
