import assert from "node:assert/strict";
import { chownSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Engine } from "../../src/platform/docker/engine.ts";
import { renewLiveFiles } from "../../src/setup/reconcile.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** The live directory of shop with these files, on an engine with these containers. */
function place(t: TestContext, files: Readonly<Record<string, string>>, containers: readonly string[] = []) {
  const livePath = temporaryDirectory(t);
  const directory = join(livePath, "shop");
  mkdirSync(directory);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const asked: string[] = [];
  const get = async (path: string) => {
    asked.push(path);
    return Buffer.from(JSON.stringify(containers.map((name) => ({ Names: [`/${name}`] }))));
  };
  const engine: Engine = { get, post: get, delete: get };
  const read = (name: string) => readFileSync(join(directory, name), "utf8");
  return { directory, read, asked, renew: () => renewLiveFiles(engine, livePath, ["shop", "new"]) };
}

test("a file that names a container which is gone gets the name of its service", async (t) => {
  const { renew, read } = place(t, { web: "shop-web-7", "web.2": "shop-web-8" }, ["shop-web-8"]);
  await renew();
  assert.equal(read("web"), "web.shop.containers.internal");
  assert.equal(read("web.2"), "shop-web-8");
});

test("all replicas of a service have its name, and a service called like one has its own", async (t) => {
  const { renew, read } = place(t, { web: "shop-web-1", "web.2": "shop-web-2", "api.2": "shop-api-1" });
  await renew();
  assert.equal(read("web.2"), "web.shop.containers.internal");
  assert.equal(read("api.2"), "api.2.shop.containers.internal");
});

test("if no file names a container, the engine is not asked", async (t) => {
  const { renew, read, asked } = place(t, { web: "web.shop.containers.internal", admin: "nobody.invalid" });
  await renew();
  assert.deepEqual(asked, []);
  assert.equal(read("admin"), "nobody.invalid");
});

test("a link is left alone, and a new file belongs to the owner of the old one", needs("root"), async (t) => {
  const { renew, read, directory } = place(t, { web: "shop-web-7" });
  const other = join(temporaryDirectory(t), "other");
  writeFileSync(other, "shop-web-7");
  symlinkSync(other, join(directory, "admin"));
  chownSync(join(directory, "web"), 65_534, 65_533);
  await renew();
  assert.equal(read("admin"), "shop-web-7");
  const { uid, gid, mode } = statSync(join(directory, "web"));
  assert.deepEqual([uid, gid, mode & 0o777], [65_534, 65_533, 0o644]);
  assert.equal(read("web"), "web.shop.containers.internal");
});
