import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { machineFilesAt } from "../../src/config/machine-part.ts";
import { followCaddyFiles } from "../../src/machine-part/follow-caddy-files.ts";
import { listenAt } from "../harness/listen.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const caddy = { id: "one", networks: [] };

interface Answer {
  readonly status: number;
  readonly body?: string;
}

/**
 * A machine part whose Caddy answers to `/adapt` and `/load` as `answer` says; `asked` has what it was sent. Its configuration
 * is the text of the Caddyfile and the names of the sites.
 */
async function machinePart(t: TestContext, answer: (path: string) => Answer = () => ({ status: 200 })) {
  const livePath = temporaryDirectory(t);
  const files = machineFilesAt(join(livePath, "etc"));
  mkdirSync(files.sitesPath, { recursive: true });
  writeFileSync(files.caddyfile, "first");
  writeFileSync(join(livePath, "closing"), "no");
  const asked: { path: string; text: string; closing: string }[] = [];
  let present = "null";
  const server = createServer(async (request, response) => {
    const { method, url: path = "", headers } = request;
    if (path === "/config/") return response.end(present);
    const text = (await request.toArray()).join("");
    assert.equal(`${method} ${headers["content-type"]}`, "POST text/caddyfile");
    asked.push({ path, text, closing: closing() });
    const { status, body } = answer(path);
    if (status !== 200) return response.writeHead(status).end(body);
    const [caddyfile, sites] = [text.trim(), readdirSync(files.sitesPath)];
    // Caddy orders names in its own way.
    if (path === "/load") present = JSON.stringify({ sites, caddyfile });
    return response.end(JSON.stringify({ result: { caddyfile, sites } }));
  });
  const closing = () => readFileSync(join(livePath, "closing"), "utf8");
  const listen = () => listenAt(t, server, join(livePath, "admin.sock"));
  const look = followCaddyFiles({ files, livePath, pause: async () => {} });
  const loaded = () => asked.filter(({ path }) => path === "/load");
  return { files, asked, loaded, look, closing, listen };
}

test("a change is loaded once two looks agree on it, and only once", async (t) => {
  const { files, loaded, look, listen } = await machinePart(t);
  await listen();
  const texts = () => loaded().map(({ text }) => text);
  await look([caddy]);
  assert.deepEqual(texts(), []);
  for (let count = 0; count < 3; count += 1) assert.equal(await look([caddy]), null);
  assert.deepEqual(texts(), ["first"]);
  writeFileSync(join(files.sitesPath, "shop.caddy"), "shop.test");
  for (let count = 0; count < 3; count += 1) await look([caddy]);
  assert.deepEqual(texts(), ["first", "first"]);
});

test("a change that Caddy reads the same is not loaded", async (t) => {
  const { files, asked, loaded, look, listen } = await machinePart(t);
  await listen();
  for (let count = 0; count < 2; count += 1) await look([caddy]);
  writeFileSync(files.caddyfile, "first\n");
  for (let count = 0; count < 2; count += 1) assert.equal(await look([caddy]), null);
  assert.deepEqual([asked.at(-1)?.text, loaded().length], ["first\n", 1]);
});

test("clients are asked to close their connections during the load, and only then", async (t) => {
  const { asked, look, closing, listen } = await machinePart(t);
  await listen();
  for (let count = 0; count < 2; count += 1) await look([caddy]);
  const closings = asked.map((one) => `${one.path} ${one.closing}`);
  assert.deepEqual(closings, ["/adapt no", "/load yes"]);
  assert.equal(closing(), "no");
});

for (const rejecting of ["/adapt", "/load"])
  test(`what Caddy rejects at ${rejecting} is a fault until the files change, and is not sent again`, async (t) => {
    let isRight = false;
    const body = JSON.stringify({ error: "adapting config: at /etc/caddy/sites/shop.caddy:3" });
    const { files, asked, look, listen } = await machinePart(t, (path) =>
      path === rejecting && !isRight ? { status: 400, body } : { status: 200 },
    );
    await listen();
    for (let count = 0; count < 4; count += 1) await look([caddy]);
    const fault = new RegExp(`keeps the old one.*at ${files.sitesPath}/shop\\.caddy:3`);
    assert.match((await look([caddy])) ?? "", fault);
    assert.equal(asked.filter(({ path }) => path === rejecting).length, 1);
    isRight = true;
    writeFileSync(files.caddyfile, "second");
    await look([caddy]);
    assert.equal(await look([caddy]), null);
  });

test("a new container is asked about the configuration again, for its answer", async (t) => {
  const { asked, look, listen } = await machinePart(t);
  await listen();
  for (const id of ["one", "one", "two", "two", "two"]) await look([{ ...caddy, id }]);
  assert.deepEqual(
    asked.map(({ path }) => path),
    ["/adapt", "/load", "/adapt"],
  );
});

test("a Caddy that is starting is no fault, and gets the configuration as soon as it answers", async (t) => {
  const { loaded, look, listen } = await machinePart(t);
  for (let count = 0; count < 3; count += 1) assert.equal(await look([caddy]), null);
  await listen();
  assert.equal(await look([caddy]), null);
  assert.equal(loaded().length, 1);
});

test("a Caddy that never answers, and none at all, are faults with what to do", async (t) => {
  const { look } = await machinePart(t);
  for (let count = 0; count < 9; count += 1) await look([caddy]);
  assert.match(
    (await look([caddy])) ?? "",
    /does not answer.*docker compose --project-directory \S+ logs .*caddy/,
  );
  assert.match((await look([])) ?? "", /does not run.*docker compose --project-directory \S+ up/);
});
