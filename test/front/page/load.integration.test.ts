import assert from "node:assert/strict";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { startAnswering } from "../../harness/hotpush.ts";
import { signIn, startPage } from "../../harness/page.ts";
import { memoryOf } from "../../harness/processes.ts";
import { letGo, waitingScript } from "../../harness/service.ts";

const mebibyte = 1024 ** 2;
const pages = 200;
const directory = new URL("../../../src/front/page/assets/", import.meta.url);

test("two hundred open pages on a running deployment cost little", async (t) => {
  const service = await startAnswering(t, { script: waitingScript });
  const page = await startPage(t, service);
  const ann = await signIn(page, service);
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ event }) => event === "deployment.started");
  assert.equal((await ann.get("/deployments/1")).status, 200);
  const before = memoryOf(page.pid).residentBytes;
  const events = `http://localhost:${page.port}/api/deployments/1/events`;
  const headers = { cookie: ann.cookie ?? "" };
  const streams: Response[] = [];
  // A busy machine does not open all within the ten seconds that the page waits.
  while (streams.length < pages)
    streams.push(...(await Promise.all(Array.from({ length: 20 }, () => fetch(events, { headers })))));
  for (const stream of streams) assert.equal(stream.status, 200);
  const read = streams.map((stream) => stream.text());
  // Each looks for changes every few seconds, at a moment of its own.
  for (let round = 0; round < 20; round += 1)
    await Promise.all(Array.from({ length: pages / 10 }, () => ann.get("/deployments/1")));
  const grown = memoryOf(page.pid).residentBytes - before;
  const sockets = socketsOf(page.pid);
  letGo(service.repoPath);
  for (const text of await Promise.all(read)) assert.match(text, /"state":"succeeded".*\n\n$/);
  t.diagnostic(`${(grown / mebibyte).toFixed(1)} MiB more, ${sockets} sockets`);
  assert.ok(grown < 60 * mebibyte, `${grown / mebibyte} MiB`);
  assert.ok(sockets < 2 * pages + 60, `${sockets} sockets`);
});

test("the history leads on to each older deployment, once, and no screen weighs 50 KB", async (t) => {
  const service = await startAnswering(t);
  const ann = await signIn(await startPage(t, service), service);
  for (let count = 0; count < 45; count += 1) await deliver(service.url, githubPush());
  const seen: number[] = [];
  for (let path: string | undefined = "/projects/default"; path !== undefined; ) {
    const { text } = await ann.get(path);
    seen.push(...[...text.matchAll(/"what"><a href="\/deployments\/(\d+)"/g)].map(([, id]) => Number(id)));
    path = /href="([^"]+)">Older</.exec(text)?.[1];
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 45 }, (_, index) => 45 - index),
  );
  // All of them, because scripts load others.
  const assets = readdirSync(directory).map((name) => readFileSync(new URL(name, directory), "utf8"));
  for (const path of ["/", "/projects/default", "/deployments/45"]) {
    const { text } = await ann.get(path);
    const bytes = [text, ...assets].reduce((sum, one) => sum + gzipSync(one).length, 0);
    t.diagnostic(`${path}: ${bytes} bytes`);
    assert.ok(bytes < 50_000, `${path}: ${bytes} bytes`);
  }
});

function socketsOf(pid: number): number {
  const targets = readdirSync(`/proc/${pid}/fd`).map((name) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${name}`);
    } catch {
      return ""; // Closed since.
    }
  });
  return targets.filter((target) => target.startsWith("socket:")).length;
}
