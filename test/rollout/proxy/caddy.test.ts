import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { LiveDirectory } from "../../../src/rollout/context.ts";
import { liveFilesRead, requestsInFlight } from "../../../src/rollout/proxy/caddy.ts";
import { fakeCaddy, liveDirectory } from "./fake-caddy.ts";

/** The project shop on the machine part, whose service web was just switched from shop-web-1 to shop-web-2. */
async function shop(t: TestContext, upstreams: Readonly<Record<string, number>>): Promise<LiveDirectory> {
  const live = liveDirectory(t, "shop");
  writeFileSync(join(live.path, "web"), "shop-web-2");
  const listed = Object.entries(upstreams).map(([address, count]) => ({ address, num_requests: count }));
  await fakeCaddy(t, live, () => listed);
  return live;
}

test("requests to another project's service of the same name do not count", async (t) => {
  const live = await shop(t, {
    "{file./run/live/blog/web}:8080": 7,
    "blog-web-1:8080": 4,
    "web.blog.containers.internal:8080": 2,
    "{file./run/live/shop/web}:8080": 5,
    "shop-web-1:8080": 3,
    "shop-web-2:8080": 2,
  });
  assert.deepEqual(await requestsInFlight(live, "web", ["shop-web-1"]), { count: 3, unnamed: 0 });
});

test("before Caddy 2.11.2, only the service's own requests are those of an unknown container", async (t) => {
  const live = await shop(t, {
    "{file./run/live/blog/web}:8080": 7,
    "{file./run/live/shop/api}:8080": 6,
    "{file./run/live/shop/web}:8080": 1,
    "{file./run/live/shop/web.2}:8080": 1,
  });
  assert.deepEqual(await requestsInFlight(live, "web", ["shop-web-1"]), { count: 0, unnamed: 2 });
});

test("requests that went to the service's name on the machine part may be at any container", async (t) => {
  const live = await shop(t, {
    "{file./run/live/shop/web}:8080": 2,
    "shop-web-2:8080": 1,
    "web.shop.containers.internal:8080": 4,
  });
  assert.deepEqual(await requestsInFlight(live, "web", ["shop-web-1"]), { count: 0, unnamed: 5 });
});

test("the live files that Caddy reads are found in its configuration", async (t) => {
  const live = liveDirectory(t);
  await fakeCaddy(t, live, () => ({
    upstreams: [{ dial: "{file./run/live/app}:8080" }, { dial: "{file./run/live/app.2}:8080" }],
    name: "{file./run/live/api}",
  }));
  assert.deepEqual([...((await liveFilesRead(live)) ?? [])], ["app", "app.2", "api"]);
});

test("live files of other projects on the machine part are not this one's", async (t) => {
  const live = liveDirectory(t, "shop");
  await fakeCaddy(t, live, () => ({
    upstreams: [{ dial: "{file./run/live/shop/web}:8080" }, { dial: "{file./run/live/blog/admin}:8080" }],
    header: "{file./run/live/closing}",
  }));
  assert.deepEqual([...((await liveFilesRead(live)) ?? [])], ["web"]);
});
