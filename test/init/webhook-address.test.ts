import assert from "node:assert/strict";
import { test } from "node:test";
import { isLoopback, parsePublicUrl } from "../../src/init/webhook-address.ts";

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
  assert.equal(isLoopback(new URL("https://shop.example.org/webhook")), false);
});
