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
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { serverFilesAt } from "../../src/config/server.ts";
import type { Engine } from "../../src/platform/docker/engine.ts";
import {
  followCaddyFiles,
  openRequestsDirectory,
  renewLiveFiles,
  seedLiveDirectory,
} from "../../src/setup/reconcile.ts";
import { listenAt } from "../harness/listen.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const caddy = { id: "one", networks: [] };

/** A server with a Caddy; `loaded` has what it was sent. */
async function startCaddy(t: TestContext) {
  const livePath = temporaryDirectory(t);
  const files = serverFilesAt(join(livePath, "etc"));
  mkdirSync(files.sitesPath, { recursive: true });
  writeFileSync(files.caddyfile, "first");
  writeFileSync(join(livePath, "closing"), "no");
  const loaded: { text: string; closing: string }[] = [];
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    assert.equal(`${method} ${url} ${headers["content-type"]}`, "POST /load text/caddyfile");
    loaded.push({ text: (await request.toArray()).join(""), closing: closing() });
    response.end();
  });
  const closing = () => readFileSync(join(livePath, "closing"), "utf8");
  const listen = () => listenAt(t, server, join(livePath, "admin.sock"));
  const look = followCaddyFiles({ files, livePath }, async () => {});
  return { files, loaded, look, closing, listen };
}

test("a change is loaded once two looks agree, and clients are asked to close meanwhile", async (t) => {
  const { files, loaded, look, closing, listen } = await startCaddy(t);
  await listen();
  const first = { text: "first", closing: "yes" };
  await look([caddy]);
  assert.deepEqual(loaded, []);
  for (let count = 0; count < 3; count += 1) assert.equal(await look([caddy]), null);
  assert.deepEqual(loaded, [first]);
  assert.equal(closing(), "no");
  writeFileSync(join(files.sitesPath, "shop.caddy"), "shop.test");
  for (let count = 0; count < 3; count += 1) await look([caddy]);
  assert.deepEqual(loaded, [first, first]);
});

test("a Caddy that is starting is no fault; one that never answers, or is not there, is", async (t) => {
  const { look, loaded, listen } = await startCaddy(t);
  for (let count = 0; count < 3; count += 1) assert.equal(await look([caddy]), null);
  for (let count = 0; count < 6; count += 1) await look([caddy]);
  assert.match(
    (await look([caddy])) ?? "",
    /does not answer.*docker compose --project-directory \S+ logs .*caddy/,
  );
  assert.match((await look([])) ?? "", /does not run.*docker compose --project-directory \S+ up/);
  await listen();
  assert.equal(await look([caddy]), null);
  assert.equal(loaded.length, 1);
});

/** The checkout of shop, and its live directory with these files. */
function makeLive(t: TestContext, files: Readonly<Record<string, string>> = {}) {
  const root = temporaryDirectory(t);
  const livePath = join(root, "live");
  const repoPath = join(root, "checkout");
  const directory = join(livePath, "shop");
  for (const path of [livePath, repoPath, directory]) mkdirSync(path);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const read = (name: string) => readFileSync(join(directory, name), "utf8");
  return { root, livePath, repoPath, directory, read };
}

test("each service of a site gets a live file, unless one is there, and nothing else does", (t) => {
  const { root, livePath, repoPath, directory, read } = makeLive(t, { web: "shop-web-7" });
  symlinkSync(join(root, "elsewhere"), join(directory, "link"));
  const lines = ["shop web", "shop admin", "shop link", "blog web", "shop ../up", "shop .hidden"];
  const site = lines.map((line) => `import service ${line} 80\n`).join("");
  seedLiveDirectory(livePath, { name: "shop", repoPath }, site);
  assert.deepEqual(["web", "admin"].map(read), ["shop-web-7", "admin.shop.containers.internal"]);
  assert.ok(!existsSync(join(root, "elsewhere")));
  assert.deepEqual(
    [readdirSync(livePath), readdirSync(directory).sort()],
    [["shop"], ["admin", "link", "web"]],
  );
});

test(
  "the directory belongs to the owner of the checkout, also after that has changed",
  needs("root"),
  (t) => {
    const { livePath, repoPath, directory } = makeLive(t);
    for (const uid of [0, 61_001, 61_002]) {
      chownSync(repoPath, uid, uid);
      seedLiveDirectory(livePath, { name: "shop", repoPath }, "");
      assert.equal(statSync(directory).uid, uid);
    }
  },
);

test("owners can read the logs of requests, but not add any, also if Caddy was first", (t) => {
  const { livePath } = makeLive(t);
  const directory = join(livePath, ".requests");
  mkdirSync(directory, { mode: 0o700 });
  openRequestsDirectory(livePath);
  assert.equal(statSync(directory).mode & 0o777, 0o755);
});

/** A container as the engine lists it. */
const listed = (name: string) => ({
  Id: "0123456789abcdef",
  Names: [`/${name}`],
  Labels: {},
  Ports: [],
  NetworkSettings: {},
});

/** Renews the live files of shop on an engine with these containers. */
async function renew(livePath: string, containers: readonly string[] = []): Promise<void> {
  const get = async () => Buffer.from(JSON.stringify(containers.map(listed)));
  const engine: Engine = { get, post: get, delete: get };
  await renewLiveFiles(engine, livePath, ["shop", "new"]);
}

test("a file that names a container which is gone gets the name of its service", async (t) => {
  const files = { web: "shop-web-7", "web.2": "shop-web-8", "web.3": "shop-web-9", "api-v1.2": "shop-api-1" };
  const { livePath, read } = makeLive(t, { ...files, admin: "nobody.invalid" });
  await renew(livePath, ["shop-web-8"]);
  assert.deepEqual(["web", "web.2", "web.3", "api-v1.2", "admin"].map(read), [
    "web.shop.containers.internal",
    "shop-web-8",
    "web.shop.containers.internal",
    "api-v1.2.shop.containers.internal",
    "nobody.invalid",
  ]);
});

test("a file with the short id of a container, whose name is too long for DNS, stays", async (t) => {
  const { livePath, read } = makeLive(t, { web: "0123456789ab", api: "0123456789ff" });
  await renew(livePath, [`shop-${"a".repeat(60)}-1`]);
  assert.deepEqual(["web", "api"].map(read), ["0123456789ab", "api.shop.containers.internal"]);
});

test("a link is left alone, and a new file belongs to the owner of the old one", needs("root"), async (t) => {
  const { livePath, read, directory } = makeLive(t, { web: "shop-web-7" });
  const other = join(temporaryDirectory(t), "other");
  writeFileSync(other, "shop-web-7");
  symlinkSync(other, join(directory, "admin"));
  chownSync(join(directory, "web"), 65_534, 65_533);
  await renew(livePath);
  assert.equal(read("admin"), "shop-web-7");
  const { uid, gid, mode } = statSync(join(directory, "web"));
  assert.deepEqual([uid, gid, mode & 0o777], [65_534, 65_533, 0o644]);
  assert.equal(read("web"), "web.shop.containers.internal");
});
