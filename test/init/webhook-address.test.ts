import assert from "node:assert/strict";
import { test } from "node:test";
import type { PublishedPort, ReverseProxy } from "../../src/init/reverse-proxy.ts";
import { findAddress, isLoopback, parsePublicUrl } from "../../src/init/webhook-address.ts";

function proxy(...published: readonly PublishedPort[]): ReverseProxy {
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

test("a public name gets a certificate, and the published port stays", () => {
  const address = findAddress({ proxy: proxy(everywhere(8080)), url, site: null, isFree: free });
  assert.deepEqual([address.site, address.hasCertificate], ["shop.example.org, http://:8080", true]);
  const on80 = findAddress({
    proxy: proxy(everywhere(80)),
    url,
    site: null,
    isFree: (port) => port !== 80,
  });
  assert.equal(on80.site, "shop.example.org", "port 80 is the app's own");
});

for (const [what, options] of [
  ["no public address is known", { url: null }],
  ["the address is not a name", { url: new URL("https://192.0.2.7/webhook") }],
  ["the address is plain http", { url: new URL("http://shop.example.org:8080/webhook") }],
  ["another proxy has 443", { isFree: (port: number) => port !== 443 }],
  ["another proxy has 80", { isFree: (port: number) => port !== 80 }],
  ["only this machine reaches the app", { proxy: proxy({ address: "127.0.0.1", port: 8080 }) }],
] as const) {
  test(`if ${what}, Caddy has the ports of the app and no other`, () => {
    const base = { proxy: proxy(everywhere(8080)), url, site: null, isFree: free };
    const { site, hasCertificate } = findAddress({ ...base, ...options });
    assert.deepEqual([site, hasCertificate], ["http://:8080", false]);
  });
}

test("SITE of .env stays", () => {
  const base = { proxy: proxy(everywhere(8080)), url, isFree: () => false };
  assert.equal(findAddress({ ...base, site: "shop.example.org, http://:8080" }).hasCertificate, true);
  assert.equal(findAddress({ ...base, site: "http://:8080" }).hasCertificate, false);
});

test("without a public URL, one of this machine is used", () => {
  const href = (one: ReverseProxy) =>
    findAddress({ proxy: one, url: null, site: null, isFree: free }).payloadUrl.href;
  assert.equal(href(proxy(everywhere(8080))), "http://127.0.0.1:8080/webhook");
  assert.equal(href({ kind: "none" }), "http://127.0.0.1:9000/webhook");
});

test("a typed URL needs neither scheme nor path", () => {
  assert.equal(parsePublicUrl("shop.example.org")?.href, "https://shop.example.org/webhook");
  assert.equal(
    parsePublicUrl(" http://shop.example.org:9000/ ")?.href,
    "http://shop.example.org:9000/webhook",
  );
  assert.equal(
    parsePublicUrl("https://shop.example.org/hooks/push")?.href,
    "https://shop.example.org/hooks/push",
  );
  for (const text of ["", "  ", "two words", "ftp://shop.example.org", "https://"]) {
    assert.equal(parsePublicUrl(text), null, text);
  }
  assert.equal(isLoopback(new URL("http://127.0.0.1:80/")), true);
  assert.equal(isLoopback(url), false);
});
