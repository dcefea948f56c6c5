import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { openHttp } from "../../../src/platform/http.ts";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { makeToken, type RunningPage, signIn, startPage } from "../../harness/page.ts";
import { memoryOf } from "../../harness/processes.ts";
import { letGo, startService, waitingScript } from "../../harness/service.ts";
import { until } from "../../harness/until.ts";

test("a viewer who opens hundreds of streams, and leaves them, keeps nobody else from any screen", async (t) => {
  const service = await startService(t, { script: waitingScript });
  const page = await startPage(t, service);
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ event }) => event === "deployment.started");
  const viewer = await makeToken(service, "viewer");
  const before = memoryOf(page.pid).residentBytes;
  const statuses: number[] = [];
  const held = Array.from({ length: 300 }, async () => {
    const stream = await openStream(page, viewer);
    statuses.push(stream?.statusCode ?? 0);
    return stream;
  });
  await until("the viewer has taken 72 streams", () => statuses.filter((one) => one === 200).length >= 72);
  const ann = await signIn(page, service);
  assert.equal((await ann.get("/deployments/1")).status, 200);
  await leaveAt(await openStream(page), '"state":"running"');
  assert.ok(statuses.includes(503), "the viewer has no limit");
  const grown = (memoryOf(page.pid).residentBytes - before) / 1024 ** 2;
  assert.ok(grown < 90, `${grown} MiB`);
  // Readers who leave at the moment at which the deployment ends.
  const open = (await Promise.all(held)).filter((stream) => stream?.statusCode === 200);
  const left = open.map((stream) => leaveAt(stream, '"state":"succeeded"'));
  letGo(service.repoPath);
  await Promise.all(left);
  assert.equal((await page.ask("GET /api/projects")).status, 200);
  assert.equal(service.child.exitCode, null);
});

test("two thousand bodies that never end keep nobody from the page", async (t) => {
  const service = await startService(t);
  const page = await startPage(t, service);
  const sockets = Array.from({ length: 2_000 }, (_, index) => {
    const socket = connect(page.port, "127.0.0.1");
    const path = index % 2 === 0 ? "/sign-in" : "/api/deployments";
    const origin = `Origin: http://localhost:${page.port}`;
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost:${page.port}\r\n${origin}\r\nContent-Length: 9000\r\n\r\n`;
    socket.on("error", () => {}).write(`${head}l`);
    return socket;
  });
  const trickle = setInterval(() => {
    for (const socket of sockets) if (socket.writable) socket.write("i");
  }, 1_000);
  t.after(() => {
    clearInterval(trickle);
    for (const socket of sockets) socket.destroy();
  });
  await until("all are connected or refused", () => sockets.every(({ connecting }) => !connecting));
  // A page without free connections answers nobody.
  assert.equal((await page.ask("GET /api/projects")).status, 200);
  const refusable = sockets.filter((_, index) => index % 2 === 1);
  await until("bodies without a credential are refused unread", () =>
    refusable.every(({ bytesRead, destroyed }) => bytesRead > 0 || destroyed),
  );
  assert.equal((await (await signIn(page, service)).get("/")).status, 200);
});

/** Resolves when the answer begins. @returns null if the page has closed the connection */
async function openStream({ port, token: own }: RunningPage, token = own): Promise<IncomingMessage | null> {
  const headers = { host: `localhost:${port}`, authorization: `Bearer ${token}` };
  const url = new URL(`http://127.0.0.1:${port}/api/deployments/1/events`);
  const stream = await openHttp(url, { headers }).catch(() => null);
  return stream?.on("error", () => {}) ?? null;
}

/** Closes the connection when `text` has come. */
async function leaveAt(stream: IncomingMessage | null, text: string): Promise<void> {
  let seen = "";
  for await (const chunk of stream ?? []) {
    seen += String(chunk);
    if (seen.includes(text)) return;
  }
  assert.fail(`The stream ended without ${text}`);
}
