import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { askFromOutside } from "../../src/setup/outside.ts";
import { freePort, listenHere } from "../harness/listen.ts";
import type { Scope } from "../harness/temporary.ts";

const address = "203.0.113.5";
const would = { deploy: { ref: "refs/heads/main", commit: "a".repeat(40), when: "now", after: null } };

const dryRun = { method: "POST", headers: { "x-hub-signature-256": "sha256=1" }, body: "{}" } as const;

async function faultAt(url: string, at = address): Promise<string | null> {
  return await askFromOutside(new URL(url), at, dryRun, 0);
}

/** A server that answers the app with one status, and the signed push with another. */
async function serve(scope: Scope, app: number, webhook: number): Promise<string> {
  const server = createServer(({ method, headers }, response) => {
    const isSigned = headers["x-hub-signature-256"] === "sha256=1";
    response.writeHead(method === "GET" ? app : webhook);
    response.end(webhook === 200 && isSigned ? JSON.stringify({ status: "dry-run", would }) : "hello");
  });
  return `http://127.0.0.1:${await listenHere(scope, server)}/webhook`;
}

for (const [what, name, at, says] of [
  [
    "a name without an address: the DNS record to make",
    "shop.invalid",
    address,
    ": shop.invalid A 203.0.113.5",
  ],
  ["a name that leads elsewhere: the record to change", "localhost", address, ": localhost A 203.0.113.5"],
  ["a port that the server refuses: the firewall to open", "127.0.0.1", "127.0.0.1", ": ufw allow PORT/tcp"],
] as const)
  test(what, async () => {
    const port = await freePort();
    const fault = await faultAt(`http://${name}:${port}/webhook`, at);
    assert.ok(fault?.endsWith(says.replace("PORT", String(port))), `${fault}`);
  });

test("a port that speaks no TLS is no valid certificate", async (t) => {
  const url = (await serve(t, 200, 200)).replace("http:", "https:");
  assert.match((await faultAt(url)) ?? "", /no valid certificate/);
});

test("an app that fails, and a webhook that something else answers", async (t) => {
  assert.match((await faultAt(await serve(t, 502, 200))) ?? "", /502/);
  assert.match((await faultAt(await serve(t, 200, 404))) ?? "", /404 by .*, not by Hotpush/);
});

test("an app and a webhook that answer are right", async (t) => {
  assert.equal(await faultAt(await serve(t, 200, 200), "127.0.0.1"), null);
});
