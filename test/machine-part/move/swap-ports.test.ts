import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { test } from "node:test";
import { askSites, swapPorts } from "../../../src/machine-part/move/swap-ports.ts";
import { freePort } from "../../harness/free-port.ts";
import type { Scope } from "../../harness/temporary.ts";

const name = "shop.example.org";

test("the ports change hands when the site answers as before", async (t) => {
  const port = await freePort();
  const site = new URL(`http://${name}:${port}/`);
  const [old, now] = [serverOf(t, 200), serverOf(t, 204)];
  await listen(old, port);
  const before = await askSites([site]);
  assert.deepEqual([...before], [[site.href, 200]]);
  const gapMs = await swapPorts({ stopOld: () => close(old), startNew: () => listen(now, port) }, before);
  assert.ok(gapMs >= 0 && gapMs < 3_000);
  assert.deepEqual([...(await askSites([site]))], [[site.href, 204]]);
});

test("a site that is gone, or answers with an error, is no site as before", async (t) => {
  for (const status of [404, 502]) {
    const port = await freePort();
    const site = new URL(`http://${name}:${port}/`);
    const now = serverOf(t, status);
    const steps = { stopOld: async () => {}, startNew: () => listen(now, port) };
    const swapping = swapPorts(steps, new Map([[site.href, 200]]), 100);
    await assert.rejects(swapping, new RegExp(`answers with status ${status} through the new Caddy`));
  }
  const nowhere = new URL(`http://127.0.0.1:${await freePort()}/`);
  const steps = { stopOld: async () => {}, startNew: async () => {} };
  await assert.rejects(swapPorts(steps, new Map([[nowhere.href, 200]]), 100), /does not answer/);
});

test("an address that did not answer well before need not do so now", async () => {
  const site = new URL(`http://127.0.0.1:${await freePort()}/`);
  const steps = { stopOld: async () => {}, startNew: async () => {} };
  await swapPorts(steps, await askSites([site]), 100);
  await swapPorts(steps, new Map([[site.href, 503]]), 100);
});

/** Answers requests for the host `name` with `status`. */
function serverOf(scope: Scope, status: number): Server {
  const server = createServer((request, response) => {
    response.writeHead(request.headers.host?.startsWith(`${name}:`) ? status : 500).end();
  });
  scope.after(() => server.close());
  return server;
}

async function listen(server: Server, port: number): Promise<void> {
  await once(server.listen(port, "127.0.0.1"), "listening");
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await once(server.close(), "close");
}
