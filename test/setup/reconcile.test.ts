import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { serverFilesAt } from "../../src/config/server.ts";
import { openLog } from "../../src/log.ts";
import { startReconciling } from "../../src/setup/reconcile.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { fakeEngine } from "./fake-engine.ts";

function start(t: TestContext, fake: ReturnType<typeof fakeEngine>) {
  const root = temporaryDirectory(t);
  const files = serverFilesAt(join(root, "etc"));
  const livePath = join(root, "live");
  for (const path of [livePath, files.projectsPath, files.sitesPath]) mkdirSync(path, { recursive: true });
  writeFileSync(files.caddyfile, "");
  writeFileSync(join(livePath, "closing"), "yes");
  const stopping = new AbortController();
  const log = openLog("error");
  log.level = "silent";
  t.after(() => stopping.abort());
  const options = {
    files,
    livePath,
    engine: fake.engine,
    log,
    stopping: stopping.signal,
    intervalMs: 5,
  };
  const reconciling = startReconciling({ ...options, projects: { list: () => [] } });
  return { ...reconciling, files, livePath };
}

test("a project that is added gets its network within a look", async (t) => {
  const fake = fakeEngine([], new Map([["caddy", ["hotpush"]]]));
  const { files } = start(t, fake);
  writeFileSync(join(files.projectsPath, "shop.env"), "");
  writeFileSync(join(files.projectsPath, "Not-a-name.env"), "");
  await until("the network", () => fake.caddies.get("caddy")?.includes("hotpush-shop"));
  assert.deepEqual(
    fake.networks.map(({ Name }) => Name),
    ["hotpush-shop"],
  );
});

test("a reload that was interrupted does not keep closing connections", async (t) => {
  const { livePath } = start(t, fakeEngine());
  await until("closing", () => readFileSync(join(livePath, "closing"), "utf8") === "no");
});

test("a file that is missing is a fault until it is there again", async (t) => {
  const { files, faults } = start(t, fakeEngine([], new Map([["caddy", ["hotpush"]]])));
  rmSync(files.caddyfile);
  await until("the fault", () => faults().some((fault) => fault.includes(files.caddyfile)));
  writeFileSync(files.caddyfile, "");
  await until("no fault", () => faults().length === 0);
});
