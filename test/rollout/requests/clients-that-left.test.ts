import assert from "node:assert/strict";
import { dirname } from "node:path";
import { test } from "node:test";
import type { Engine } from "../../../src/platform/docker/engine.ts";
import { clientsThatLeft } from "../../../src/rollout/requests/clients-that-left.ts";
import { liveDirectory } from "../proxy/fake-caddy.ts";

function warning(error: string, host = "shop.example.org:8443"): string {
  const fields = { upstream: "{file./run/live/app}:8080", request: { host }, error };
  return `${JSON.stringify({ level: "warn", msg: "aborting with incomplete response", ...fields })}\n`;
}

const warnings = [
  warning("reading: unexpected EOF"),
  warning("writing: write tcp 10.0.0.1:443->10.0.0.2:5: write: broken pipe"),
  warning("reading: context canceled"),
  '{"level":"info","msg":"writing: nothing of it"}\n',
  warning("reading: context canceled", "blog.example.org"),
].join("");

/** An engine with one container, which has `source` mounted and this log. */
function engineWith(source: string, log: () => string): Engine {
  return {
    async get(path) {
      if (path === "/containers/json")
        return Buffer.from(JSON.stringify([{ Id: "caddy", Mounts: [{ Source: source }] }]));
      assert.match(path, /^\/containers\/caddy\/logs\?.*since=1700000000\.500$/);
      return Buffer.from(log());
    },
    post: async () => Buffer.alloc(0),
    delete: async () => Buffer.alloc(0),
  };
}

test("Caddy's warnings say of each host how many clients left", async (t) => {
  const live = liveDirectory(t);
  const left = await clientsThatLeft(
    engineWith(live.path, () => warnings),
    live,
    1_700_000_000_500,
  );
  assert.deepEqual(
    [...(left ?? [])],
    [
      ["shop.example.org", 2],
      ["blog.example.org", 1],
    ],
  );
});

test("on the machine part it is the Caddy that has the directories of all projects", async (t) => {
  const live = liveDirectory(t, "shop");
  const left = await clientsThatLeft(
    engineWith(dirname(live.path), () => warnings),
    live,
    1_700_000_000_500,
  );
  assert.equal(left?.get("shop.example.org"), 2);
});

test("a log that cannot be read leaves it unknown", async (t) => {
  const live = liveDirectory(t);
  const engine = engineWith(live.path, () => {
    throw new Error("configured logging driver does not support reading");
  });
  assert.equal(await clientsThatLeft(engine, live, 1_700_000_000_500), null);
});
