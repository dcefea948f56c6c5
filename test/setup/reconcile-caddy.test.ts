import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { serverFilesAt } from "../../src/config/server.ts";
import { followCaddyFiles } from "../../src/setup/reconcile.ts";
import { listenAt } from "../harness/listen.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const caddy = { id: "one", networks: [] };

interface Answer {
  readonly status: number;
  readonly body?: string;
}

/** A server whose Caddy answers as `answer` says; `loaded` has what it was sent. */
async function server(t: TestContext, answer: () => Answer = () => ({ status: 200 })) {
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
  const { files, loaded, look, listen } = await server(t);
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
  const { loaded, look, closing, listen } = await server(t);
  await listen();
  for (let count = 0; count < 2; count += 1) await look([caddy]);
  assert.deepEqual(loaded, [{ text: "first", closing: "yes" }]);
  assert.equal(closing(), "no");
});

test("what Caddy rejects is a fault until the files change, and is not sent again", async (t) => {
  let isRight = false;
  const body = JSON.stringify({ error: "adapting config: at /etc/caddy/sites/shop.caddy:3" });
  const { files, loaded, look, listen } = await server(t, () =>
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
  const { loaded, look, listen } = await server(t);
  await listen();
  for (const id of ["one", "one", "two", "two", "two"]) await look([{ ...caddy, id }]);
  assert.equal(loaded.length, 2);
});

test("a Caddy that is starting is no fault, and gets the configuration as soon as it answers", async (t) => {
  const { loaded, look, listen } = await server(t);
  for (let count = 0; count < 3; count += 1) assert.equal(await look([caddy]), null);
  await listen();
  assert.equal(await look([caddy]), null);
  assert.equal(loaded.length, 1);
});

test("a Caddy that never answers, and none at all, are faults with what to do", async (t) => {
  const { look } = await server(t);
  for (let count = 0; count < 9; count += 1) await look([caddy]);
  assert.match(
    (await look([caddy])) ?? "",
    /does not answer.*docker compose --project-directory \S+ logs .*caddy/,
  );
  assert.match((await look([])) ?? "", /does not run.*docker compose --project-directory \S+ up/);
});
