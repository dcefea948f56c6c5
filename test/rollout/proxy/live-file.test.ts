import "../../harness/environment.ts";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readLiveFiles, switchLiveFiles } from "../../../src/rollout/proxy/live-file.ts";

async function liveDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-live-"));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}

test("what was switched to is read again", async (t) => {
  const directory = await liveDirectory(t);
  assert.deepEqual(await readLiveFiles(directory, "app"), []);
  await switchLiveFiles(directory, "app", ["shop-app-1"]);
  assert.deepEqual(await readLiveFiles(directory, "app"), ["shop-app-1"]);
  assert.equal(await readFile(join(directory, "app"), "utf8"), "shop-app-1");
});

test("each replica has a file of its own, and no unfinished file stays", async (t) => {
  const directory = await liveDirectory(t);
  await switchLiveFiles(directory, "app", ["shop-app-4", "shop-app-5", "shop-app-6"]);
  assert.deepEqual((await readdir(directory)).sort(), ["app", "app.2", "app.3"]);
  assert.deepEqual(await readLiveFiles(directory, "app"), ["shop-app-4", "shop-app-5", "shop-app-6"]);
});

test("files of replicas that are no more name the first one", async (t) => {
  const directory = await liveDirectory(t);
  await switchLiveFiles(directory, "app", ["shop-app-1", "shop-app-2"]);
  await switchLiveFiles(directory, "app", ["shop-app-3"]);
  assert.equal(await readFile(join(directory, "app.2"), "utf8"), "shop-app-3");
  assert.deepEqual(await readLiveFiles(directory, "app"), ["shop-app-3"]);
});

test("services whose names begin alike are kept apart", async (t) => {
  const directory = await liveDirectory(t);
  await switchLiveFiles(directory, "app", ["shop-app-1"]);
  await switchLiveFiles(directory, "app-admin", ["shop-app-admin-1"]);
  await writeFile(join(directory, "app.02"), "not ours\n");
  assert.deepEqual(await readLiveFiles(directory, "app"), ["shop-app-1"]);
});

test("a reader never sees half a name", async (t) => {
  const directory = await liveDirectory(t);
  await switchLiveFiles(directory, "app", ["shop-app-1"]);
  const reader = spawn(process.execPath, ["-e", readUntilTold, join(directory, "app")]);
  t.after(() => reader.kill("SIGKILL"));
  await once(reader.stdout, "data");
  for (let round = 0; round < 200; round += 1)
    await switchLiveFiles(directory, "app", [`shop-app-${1 + (round % 2)}`]);
  reader.stdin.end();
  const [seen] = await once(reader.stdout, "data");
  assert.equal(String(seen), "shop-app-1 shop-app-2");
});

/** As the proxy, another process: it says what it has seen when its input ends. */
const readUntilTold = `
const seen = new Set();
process.stdin.resume().on("end", () => {
  process.stdout.write([...seen].sort().join(" "));
  process.exit();
});
process.stdout.write("reading");
const look = () => {
  for (let count = 0; count < 100; count += 1) seen.add(require("node:fs").readFileSync(process.argv[1], "utf8"));
  setImmediate(look);
};
look();
`;
