import assert from "node:assert/strict";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { makeToken, type RunningPage, signIn, startPage } from "../../harness/page.ts";
import { memoryOf } from "../../harness/processes.ts";
import { letGo, type RunningService, startService, waitingScript } from "../../harness/service.ts";
import { until } from "../../harness/until.ts";

test("a viewer who opens hundreds of streams, and leaves them, keeps nobody else from any screen", async (t) => {
  const service = await startService(t, { script: waitingScript });
  const page = await startPage(t, service);
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ event }) => event === "deployment.started");
  const viewer = await makeToken(service, "viewer");
  const before = memoryOf(page.pid).residentBytes;
  const statuses: number[] = [];
  const held = Array.from({ length: 300 }, async (_, index) => {
    const path = index < 100 ? "/api/deployments/1/events" : eventsOf(1);
    const stream = await openStream(page, path, viewer);
    statuses.push(stream.status);
    return stream;
  });
  await until("the viewer has taken 72 streams", () => statuses.filter((one) => one === 200).length >= 72);
  const ann = await signIn(page, service);
  assert.equal((await ann.get("/deployments/1")).status, 200);
  const other = await openStream(page, eventsOf(1));
  await other.leaveAt('"state":"running"');
  assert.ok(statuses.includes(503), "the viewer has no limit");
  const grown = (memoryOf(page.pid).residentBytes - before) / 1024 ** 2;
  assert.ok(grown < 90, `${grown} MiB`);
  // Readers who leave at the moment at which the deployment ends.
  const open = (await Promise.all(held)).filter(({ status }) => status === 200);
  const left = open.map((stream) => stream.leaveAt('"state":"succeeded"'));
  letGo(service.repoPath);
  await Promise.all(left);
  await assertBothAlive(service, page);
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

function eventsOf(id: number): string {
  return `/api/deployments/${id}/events`;
}

interface OpenedStream {
  readonly status: number;
  /** Closes the connection when `text` has come. */
  readonly leaveAt: (text: string) => Promise<void>;
}

/** Resolves when the answer begins, or the page has closed the connection (status 0). */
async function openStream(
  page: RunningPage,
  path: string,
  token: string = page.token,
): Promise<OpenedStream> {
  const headers = { host: `localhost:${page.port}`, authorization: `Bearer ${token}` };
  const sent = request({ host: "127.0.0.1", port: page.port, path, headers, agent: false });
  const began = new Promise<IncomingMessage | null>((resolve) => {
    sent
      .on("response", resolve)
      .on("error", () => resolve(null))
      .end();
  });
  const response = await began;
  response?.on("error", () => {});
  return {
    status: response?.statusCode ?? 0,
    async leaveAt(text) {
      let seen = "";
      for await (const chunk of (response ?? []) as AsyncIterable<Buffer>) {
        seen += String(chunk);
        if (!seen.includes(text)) continue;
        sent.destroy();
        return;
      }
      assert.fail(`The stream ended without ${text}`);
    },
  };
}

async function assertBothAlive(service: RunningService, page: RunningPage): Promise<void> {
  assert.equal((await page.ask("GET /api/projects")).status, 200);
  assert.equal(service.child.exitCode, null);
  assert.equal(
    service.log.lines.find(({ event }) => event === "service.failed"),
    undefined,
  );
}
