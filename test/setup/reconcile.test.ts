import assert from "node:assert/strict";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { serverFilesAt } from "../../src/config/server.ts";
import { openLog } from "../../src/log.ts";
import type { Engine } from "../../src/platform/docker/engine.ts";
import {
  followCaddyFiles,
  openRequestsDirectory,
  renewLiveFiles,
  seedLiveDirectory,
  startReconciling,
} from "../../src/setup/reconcile.ts";
import { listenAt } from "../harness/listen.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { fakeEngine } from "./fake-engine.ts";

function startAll(t: TestContext, fake: ReturnType<typeof fakeEngine>) {
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
  const { files } = startAll(t, fake);
  writeFileSync(join(files.projectsPath, "shop.env"), "");
  writeFileSync(join(files.projectsPath, "Not-a-name.env"), "");
  await until("the network", () => fake.caddies.get("caddy")?.includes("hotpush-shop"));
  assert.deepEqual(
    fake.networks.map(({ Name }) => Name),
    ["hotpush-shop"],
  );
});

test("a reload that was interrupted does not keep closing connections", async (t) => {
  const { livePath } = startAll(t, fakeEngine());
  await until("closing", () => readFileSync(join(livePath, "closing"), "utf8") === "no");
});

test("a file that is missing is a fault until it is there again", async (t) => {
  const { files, faults } = startAll(t, fakeEngine([], new Map([["caddy", ["hotpush"]]])));
  rmSync(files.caddyfile);
  await until("the fault", () => faults().some((fault) => fault.includes(files.caddyfile)));
  writeFileSync(files.caddyfile, "");
  await until("no fault", () => faults().length === 0);
});

const caddy = { id: "one", networks: [] };

interface Answer {
  readonly status: number;
  readonly body?: string;
}

/** A server whose Caddy answers as `answer` says; `loaded` has what it was sent. */
async function startCaddy(t: TestContext, answer: () => Answer = () => ({ status: 200 })) {
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
    const { status, body } = answer();
    response.writeHead(status).end(body);
  });
  const closing = () => readFileSync(join(livePath, "closing"), "utf8");
  const listen = () => listenAt(t, server, join(livePath, "admin.sock"));
  const look = followCaddyFiles({ files, livePath, pause: async () => {} });
  return { files, loaded, look, closing, listen };
}

test("a change is loaded once two looks agree on it, and only once", async (t) => {
  const { files, loaded, look, listen } = await startCaddy(t);
  await listen();
  const texts = () => loaded.map(({ text }) => text);
  await look([caddy]);
  assert.deepEqual(texts(), []);
  for (let count = 0; count < 3; count += 1) assert.equal(await look([caddy]), null);
  assert.deepEqual(texts(), ["first"]);
  writeFileSync(join(files.sitesPath, "shop.caddy"), "shop.test");
  for (let count = 0; count < 3; count += 1) await look([caddy]);
  assert.deepEqual(texts(), ["first", "first"]);
});

test("clients are asked to close their connections during the load, and only then", async (t) => {
  const { loaded, look, closing, listen } = await startCaddy(t);
  await listen();
  for (let count = 0; count < 2; count += 1) await look([caddy]);
  assert.deepEqual(loaded, [{ text: "first", closing: "yes" }]);
  assert.equal(closing(), "no");
});

test("what Caddy rejects is a fault until the files change, and is not sent again", async (t) => {
  let isRight = false;
  const body = JSON.stringify({ error: "adapting config: at /etc/caddy/sites/shop.caddy:3" });
  const { files, loaded, look, listen } = await startCaddy(t, () =>
    isRight ? { status: 200 } : { status: 400, body },
  );
  await listen();
  for (let count = 0; count < 4; count += 1) await look([caddy]);
  const fault = new RegExp(`keeps the old one.*at ${files.sitesPath}/shop\\.caddy:3`);
  assert.match((await look([caddy])) ?? "", fault);
  assert.equal(loaded.length, 1);
  isRight = true;
  writeFileSync(files.caddyfile, "second");
  await look([caddy]);
  assert.equal(await look([caddy]), null);
});

test("a new container is asked about the configuration again, for its answer", async (t) => {
  const { loaded, look, listen } = await startCaddy(t);
  await listen();
  for (const id of ["one", "one", "two", "two", "two"]) await look([{ ...caddy, id }]);
  assert.equal(loaded.length, 2);
});

test("a Caddy that is starting is no fault, and gets the configuration as soon as it answers", async (t) => {
  const { loaded, look, listen } = await startCaddy(t);
  for (let count = 0; count < 3; count += 1) assert.equal(await look([caddy]), null);
  await listen();
  assert.equal(await look([caddy]), null);
  assert.equal(loaded.length, 1);
});

test("a Caddy that never answers, and none at all, are faults with what to do", async (t) => {
  const { look } = await startCaddy(t);
  for (let count = 0; count < 9; count += 1) await look([caddy]);
  assert.match(
    (await look([caddy])) ?? "",
    /does not answer.*docker compose --project-directory \S+ logs .*caddy/,
  );
  assert.match((await look([])) ?? "", /does not run.*docker compose --project-directory \S+ up/);
});

const asRoot = needs("root");

const site =
  "shop.test {\n\timport deliveries shop\n\timport service shop web 8080\n\timport service shop admin 3000\n}\n";

function makeLive(t: TestContext) {
  const root = temporaryDirectory(t);
  const livePath = join(root, "live");
  const repoPath = join(root, "checkout");
  for (const path of [livePath, repoPath]) mkdirSync(path);
  return { root, livePath, repoPath, directory: join(livePath, "shop") };
}

test("a live file is made for each service of the site, with the service's name", (t) => {
  const { livePath, repoPath, directory } = makeLive(t);
  seedLiveDirectory(livePath, { name: "shop", repoPath }, site);
  assert.deepEqual(readdirSync(directory), ["admin", "web"]);
  assert.equal(readFileSync(join(directory, "web"), "utf8"), "web.shop.containers.internal");
  assert.equal(statSync(directory).mode & 0o777, 0o755);
});

test("a live file that a roll-out has written stays", (t) => {
  const { livePath, repoPath, directory } = makeLive(t);
  mkdirSync(directory);
  writeFileSync(join(directory, "web"), "shop-web-7");
  seedLiveDirectory(livePath, { name: "shop", repoPath }, site);
  assert.equal(readFileSync(join(directory, "web"), "utf8"), "shop-web-7");
  assert.ok(existsSync(join(directory, "admin")));
});

test("the directory belongs to the owner of the checkout, also after that has changed", asRoot, (t) => {
  const { livePath, repoPath, directory } = makeLive(t);
  for (const uid of [0, 61_001, 61_002]) {
    chownSync(repoPath, uid, uid);
    seedLiveDirectory(livePath, { name: "shop", repoPath }, site);
    assert.equal(statSync(directory).uid, uid);
  }
});

test("owners can read the logs of requests, but not add any, also if Caddy was first", (t) => {
  const { livePath } = makeLive(t);
  const directory = join(livePath, ".requests");
  mkdirSync(directory, { mode: 0o700 });
  openRequestsDirectory(livePath);
  assert.equal(statSync(directory).mode & 0o777, 0o755);
});

test("a link in the directory of a project is not followed", (t) => {
  const { root, livePath, repoPath, directory } = makeLive(t);
  mkdirSync(directory);
  symlinkSync(join(root, "elsewhere"), join(directory, "web"));
  seedLiveDirectory(livePath, { name: "shop", repoPath }, site);
  assert.ok(!existsSync(join(root, "elsewhere")));
});

test("a site cannot have files made for another project, or outside of its directory", (t) => {
  const { livePath, repoPath, directory } = makeLive(t);
  const foreign =
    "import service blog web 80\nimport service shop ../up 80\nimport service shop .hidden 80\n";
  seedLiveDirectory(livePath, { name: "shop", repoPath }, foreign);
  assert.deepEqual(readdirSync(livePath), ["shop"]);
  assert.deepEqual(readdirSync(directory), []);
});

test("without a checkout nothing is made, because nobody could own it", (t) => {
  const { livePath } = makeLive(t);
  seedLiveDirectory(livePath, { name: "shop", repoPath: "/nonexistent" }, site);
  assert.deepEqual(readdirSync(livePath), []);
});

/** The live directory of shop with these files, on an engine with these containers. */
function makeLiveFiles(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  containers: readonly string[] = [],
) {
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
  const { renew, read } = makeLiveFiles(t, { web: "shop-web-7", "web.2": "shop-web-8" }, ["shop-web-8"]);
  await renew();
  assert.equal(read("web"), "web.shop.containers.internal");
  assert.equal(read("web.2"), "shop-web-8");
});

test("all replicas of a service have its name", async (t) => {
  const { renew, read } = makeLiveFiles(t, { web: "shop-web-1", "web.2": "shop-web-2" });
  await renew();
  assert.equal(read("web.2"), "web.shop.containers.internal");
});

test("a service whose own name ends like a replica's has its own name", async (t) => {
  const { renew, read } = makeLiveFiles(t, { "api-v1.2": "shop-api-v1.2-1" });
  await renew();
  assert.equal(read("api-v1.2"), "api-v1.2.shop.containers.internal");
});

test("if no file names a container, the engine is not asked", async (t) => {
  const { renew, read, asked } = makeLiveFiles(t, {
    web: "web.shop.containers.internal",
    admin: "nobody.invalid",
  });
  await renew();
  assert.deepEqual(asked, []);
  assert.equal(read("admin"), "nobody.invalid");
});

test("a link is left alone, and a new file belongs to the owner of the old one", needs("root"), async (t) => {
  const { renew, read, directory } = makeLiveFiles(t, { web: "shop-web-7" });
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
