import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { askFromOutside } from "../../src/setup/outside.ts";
import { freePort, listenHere } from "../harness/listen.ts";
import type { Scope } from "../harness/temporary.ts";

const address = "203.0.113.5";

async function faultAt(url: string, at = address): Promise<string | null> {
  return await askFromOutside(new URL(url), at, 0);
}

/** A server that answers the app with one status, and the webhook with another. */
async function serve(scope: Scope, app: number, webhook: number): Promise<string> {
  const server = createServer(({ method }, response) => {
    response.writeHead(method === "GET" ? app : webhook);
    response.end(webhook === 401 ? '{"type":"urn:hotpush:problem:signature_missing"}' : "hello");
  });
  return `http://127.0.0.1:${await listenHere(scope, server)}/webhook`;
}

test("a name without an address: the DNS record to make", async () => {
  const fault = await faultAt("https://shop.invalid/webhook");
  assert.match(fault ?? "", /: shop\.invalid A 203\.0\.113\.5$/);
});

test("a port at which nobody listens, at a name that leads elsewhere: the record to change", async () => {
  const port = await freePort();
  const fault = await faultAt(`http://localhost:${port}/webhook`);
  assert.match(fault ?? "", new RegExp(`port ${port} of localhost.+: localhost A 203\\.0\\.113\\.5$`));
});

test("a port that the server refuses: the firewall to open", async () => {
  const port = await freePort();
  const fault = await faultAt(`http://127.0.0.1:${port}/webhook`, "127.0.0.1");
  assert.match(fault ?? "", new RegExp(`ufw allow ${port}/tcp`));
});

test("a port that speaks no TLS is no valid certificate", async (t) => {
  const url = (await serve(t, 200, 401)).replace("http:", "https:");
  assert.match((await faultAt(url)) ?? "", /no valid certificate/);
});

test("an app that fails, and a webhook that something else answers", async (t) => {
  assert.match((await faultAt(await serve(t, 502, 401))) ?? "", /502/);
  assert.match((await faultAt(await serve(t, 200, 404))) ?? "", /404, not by Hotpush/);
});

test("an app and a webhook that answer are right", async (t) => {
  assert.equal(await faultAt(await serve(t, 200, 401), "127.0.0.1"), null);
});
