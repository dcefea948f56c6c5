import assert from "node:assert/strict";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openRequestsDirectory, seedLiveDirectory } from "../../src/setup/reconcile.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const asRoot = needs("root");

const site =
  "shop.test {\n\timport deliveries shop\n\timport service shop web 8080\n\timport service shop admin 3000\n}\n";

function place(t: TestContext) {
  const root = temporaryDirectory(t);
  const livePath = join(root, "live");
  const repoPath = join(root, "checkout");
  for (const path of [livePath, repoPath]) mkdirSync(path);
  return { root, livePath, repoPath, directory: join(livePath, "shop") };
}

test("a live file is made for each service of the site, with the service's name", (t) => {
  const { livePath, repoPath, directory } = place(t);
  seedLiveDirectory(livePath, { name: "shop", repoPath }, site);
  assert.deepEqual(readdirSync(directory), ["admin", "web"]);
  assert.equal(readFileSync(join(directory, "web"), "utf8"), "web.shop.containers.internal");
  assert.equal(statSync(directory).mode & 0o777, 0o755);
});

test("a live file that a roll-out has written stays", (t) => {
  const { livePath, repoPath, directory } = place(t);
  mkdirSync(directory);
  writeFileSync(join(directory, "web"), "shop-web-7");
  seedLiveDirectory(livePath, { name: "shop", repoPath }, site);
  assert.equal(readFileSync(join(directory, "web"), "utf8"), "shop-web-7");
  assert.ok(existsSync(join(directory, "admin")));
});

test("the directory belongs to the owner of the checkout, also after that has changed", asRoot, (t) => {
  const { livePath, repoPath, directory } = place(t);
  for (const uid of [0, 61_001, 61_002]) {
    chownSync(repoPath, uid, uid);
    seedLiveDirectory(livePath, { name: "shop", repoPath }, site);
    assert.equal(statSync(directory).uid, uid);
  }
});

test("owners can read the logs of requests, but not add any, also if Caddy was first", (t) => {
  const { livePath } = place(t);
  const directory = join(livePath, ".requests");
  mkdirSync(directory, { mode: 0o700 });
  openRequestsDirectory(livePath);
  assert.equal(statSync(directory).mode & 0o777, 0o755);
});

test("a link in the directory of a project is not followed", (t) => {
  const { root, livePath, repoPath, directory } = place(t);
  mkdirSync(directory);
  symlinkSync(join(root, "elsewhere"), join(directory, "web"));
  seedLiveDirectory(livePath, { name: "shop", repoPath }, site);
  assert.ok(!existsSync(join(root, "elsewhere")));
});

test("a site cannot have files made for another project, or outside of its directory", (t) => {
  const { livePath, repoPath, directory } = place(t);
  const foreign =
    "import service blog web 80\nimport service shop ../up 80\nimport service shop .hidden 80\n";
  seedLiveDirectory(livePath, { name: "shop", repoPath }, foreign);
  assert.deepEqual(readdirSync(livePath), ["shop"]);
  assert.deepEqual(readdirSync(directory), []);
});

test("without a checkout nothing is made, because nobody could own it", (t) => {
  const { livePath } = place(t);
  seedLiveDirectory(livePath, { name: "shop", repoPath: "/nonexistent" }, site);
  assert.deepEqual(readdirSync(livePath), []);
});
