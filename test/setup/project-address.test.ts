import assert from "node:assert/strict";
import { test } from "node:test";
import { findProjectAddress, parsePublicUrl } from "../../src/setup/project.ts";

const usual = { http: 80, https: 443 };

for (const [what, url, ports, payloadUrl, name, hasCertificate] of [
  [
    "a public name",
    "https://shop.example.org/webhook",
    usual,
    "https://shop.example.org/webhook",
    "shop.example.org",
    true,
  ],
  ["a name without TLS", "http://shop.test/webhook", usual, "http://shop.test/webhook", "shop.test", false],
  ["an address", "http://203.0.113.5/webhook", usual, "http://203.0.113.5/webhook/shop", null, false],
  [
    "an IPv6 address",
    "http://[2001:db8::1]/webhook",
    usual,
    "http://[2001:db8::1]/webhook/shop",
    null,
    false,
  ],
  ["no URL", null, { http: 8080, https: 8443 }, "http://127.0.0.1:8080/webhook/shop", null, false],
  [
    "a name behind another proxy",
    "https://shop.example.org/webhook",
    { http: 8080, https: 8443 },
    "https://shop.example.org/webhook",
    "shop.example.org",
    false,
  ],
] as const) {
  test(`with ${what}, deliveries are sent to ${payloadUrl}`, () => {
    const address = findProjectAddress(url === null ? null : new URL(url), "shop", ports);
    assert.deepEqual(
      { ...address, payloadUrl: address.payloadUrl.href },
      { payloadUrl, name, hasCertificate },
    );
  });
}

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
});
