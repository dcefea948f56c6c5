import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { isPortTaken } from "../../src/init/machine.ts";
import type { Front, PublishedPort } from "../../src/init/reverse-proxy.ts";
import { findAddress, isLoopback, parseAddress } from "../../src/init/webhook-address.ts";

function front(...published: readonly PublishedPort[]): Front {
  return {
    kind: "new-caddy",
    service: "web",
    target: 3000,
    published,
    dropped: [],
    hasContainerName: false,
    networks: [],
  };
}

const everywhere = (port: number) => ({ address: "", port });
const url = new URL("https://shop.example.org/webhook");
const free = () => true;

test("a name that leads here gets a certificate, and the port that was published stays", () => {
  const address = findAddress({ front: front(everywhere(8080)), url, site: null, isFree: free });
  assert.deepEqual([address.site, address.hasCertificate], ["shop.example.org, http://:8080", true]);
  const on80 = findAddress({
    front: front(everywhere(80)),
    url,
    site: null,
    isFree: (port) => port !== 80,
  });
  assert.equal(on80.site, "shop.example.org", "port 80 is the app's own");
});

for (const [what, options] of [
  ["no public address is known", { url: null }],
  ["the address is no name", { url: new URL("https://192.0.2.7/webhook") }],
  ["the address is plain http", { url: new URL("http://shop.example.org:8080/webhook") }],
  ["443 is another proxy's", { isFree: (port: number) => port !== 443 }],
  ["80 is another proxy's", { isFree: (port: number) => port !== 80 }],
  ["the app is for this machine only", { front: front({ address: "127.0.0.1", port: 8080 }) }],
] as const) {
  test(`where ${what}, Caddy listens where the app did, and nowhere else`, () => {
    const base = { front: front(everywhere(8080)), url, site: null, isFree: free };
    const { site, hasCertificate } = findAddress({ ...base, ...options });
    assert.deepEqual([site, hasCertificate], ["http://:8080", false]);
  });
}

test("what .env has decided before stays", () => {
  const base = { front: front(everywhere(8080)), url, isFree: () => false };
  assert.equal(findAddress({ ...base, site: "shop.example.org, http://:8080" }).hasCertificate, true);
  assert.equal(findAddress({ ...base, site: "http://:8080" }).hasCertificate, false);
});

test("without a public address, that of this machine is used", () => {
  const href = (one: Front) =>
    findAddress({ front: one, url: null, site: null, isFree: free }).payloadUrl.href;
  assert.equal(href(front(everywhere(8080))), "http://127.0.0.1:8080/webhook");
  assert.equal(href({ kind: "none" }), "http://127.0.0.1:9000/webhook");
});

test("a typed address needs neither scheme nor path", () => {
  assert.equal(parseAddress("shop.example.org")?.href, "https://shop.example.org/webhook");
  assert.equal(parseAddress(" http://shop.example.org:9000/ ")?.href, "http://shop.example.org:9000/webhook");
  assert.equal(
    parseAddress("https://shop.example.org/hooks/push")?.href,
    "https://shop.example.org/hooks/push",
  );
  for (const text of ["", "  ", "two words", "ftp://shop.example.org", "https://"]) {
    assert.equal(parseAddress(text), null, text);
  }
  assert.equal(isLoopback(new URL("http://127.0.0.1:80/")), true);
  assert.equal(isLoopback(url), false);
});

test("a port that something listens on is taken, on IPv4 and IPv6", async (t) => {
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
