import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ComposeModel } from "../../src/platform/compose.ts";
import { findLiveDirectory } from "../../src/rollout/locate-project.ts";
import { adoptLiveFiles } from "../../src/rollout/switch-traffic.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { emptyEngine, engineWithServer } from "./engine-with-server.ts";
import { liveDirectory as liveDirectoryOf } from "./fake-caddy.ts";
import { sampleRollout, sampleService } from "./sample.ts";

const onMachine: ComposeModel = {
  name: "my_shop",
  services: {},
  networks: { hotpush: { name: "hotpush-shop", external: true } },
};
const nothing = { livePath: undefined };

test("a given directory counts on the server too", async (t) => {
  const path = join(temporaryDirectory(t), "shop");
  mkdirSync(path);
  const found = await findLiveDirectory(emptyEngine, onMachine, { livePath: path });
  assert.deepEqual(found, { path, adminSocket: join(path, "../admin.sock"), project: "shop" });
});

test("without its server, or its directory there, a project is not rolled out", async (t) => {
  const livePath = join(temporaryDirectory(t), "none");
  const none = isProblem("live_file_not_writable", /^shop is on Hotpush's server .* has none/);
  await assert.rejects(findLiveDirectory(emptyEngine, onMachine, nothing), none);
  const engine = engineWithServer({ statePath: "/nowhere", livePath });
  const missing = isProblem("live_file_not_writable", /none\/shop, .* docker start/);
  await assert.rejects(findLiveDirectory(engine, onMachine, nothing), missing);
});

test("the live file of a service that is recreated leads to the service itself", async (t) => {
  const liveDirectory = liveDirectoryOf(t, "shop");
  const recreated = { how: "recreate", reason: "label" } as const;
  const services = [
    sampleService({ name: "admin", replacement: recreated }),
    sampleService({ name: "db", replacement: recreated }),
  ];
  const file = join(liveDirectory.path, "admin");
  writeFileSync(file, "shop-admin-7");
  const project = { name: "shop", services };
  await adoptLiveFiles(sampleRollout(temporaryDirectory(t), { liveDirectory, project }));
  assert.equal(readFileSync(file, "utf8"), "admin.shop.containers.internal");
  assert.deepEqual(readdirSync(liveDirectory.path), ["admin"]);
});
