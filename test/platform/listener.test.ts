import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { isPortTaken } from "../../src/platform/listen.ts";

test("a port with a listener is taken, on IPv4 and IPv6", async (t) => {
  for (const host of ["127.0.0.1", "::1"]) {
    const server = createServer().listen(0, host);
    await once(server, "listening");
    t.after(() => server.close());
    assert.equal(isPortTaken((server.address() as AddressInfo).port), true, host);
  }
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  assert.equal(isPortTaken(port), false);
});
