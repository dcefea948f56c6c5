import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComposeService } from "../../../src/platform/compose/model.ts";
import { volumeOfOneWriter } from "../../../src/rollout/compose/two-writers.ts";

const data = { type: "volume", source: "data", target: "/app/data" };
const bind = (source: string, target: string) => ({ type: "bind", source, target });

for (const [name, service, target] of [
  ["a named volume counts", { volumes: [data] }, "/app/data"],
  ["a directory of the machine counts", { volumes: [bind("/tmp/shop/data", "/data")] }, "/data"],
  ["a read-only volume does not", { volumes: [{ ...data, read_only: true }] }, null],
  ["an anonymous volume does not", { volumes: [{ type: "volume", target: "/data" }] }, null],
  ["a file of configuration does not", { volumes: [bind("/srv/a.yml", "/etc/a.yml")] }, null],
  ["a database file does", { volumes: [bind("/srv/a.db", "/app/a.db")] }, "/app/a.db"],
  [
    "a socket and the clock do not",
    {
      volumes: [bind("/var/run/docker.sock", "/docker.sock"), bind("/etc/localtime", "/etc/localtime")],
    },
    null,
  ],
  ["installed packages do not", { volumes: [{ ...data, target: "/app/node_modules" }] }, null],
  ["an image that bears several writers does not", { image: "nextcloud:31-apache", volumes: [data] }, null],
  ["replicas write to it already", { volumes: [data], deploy: { replicas: 2 } }, null],
] as const satisfies readonly (readonly [string, ComposeService, string | null])[]) {
  test(name, () => {
    assert.equal(volumeOfOneWriter("app", { app: service })?.target ?? null, target);
  });
}

test("a worker with the same image writes to it already; a backup with another does not count", () => {
  const app = { image: "shop", volumes: [data] };
  assert.equal(volumeOfOneWriter("app", { app, worker: app }), null);
  assert.equal(
    volumeOfOneWriter("app", { app, backup: { image: "restic", volumes: [data] } })?.target,
    "/app/data",
  );
});
