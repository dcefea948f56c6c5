import assert from "node:assert/strict";
import { isIP } from "node:net";
import { test } from "node:test";
import { checkNames, parseAddressList, pathPatterns, webhookUrl } from "../../src/config/values.ts";

const contains = (text: string, address: string) =>
  parseAddressList(text)?.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");

test("a list has its addresses and subnets of both families, and nothing else", () => {
  const text = "192.0.2.7, 198.51.100.0/24\t2001:db8::/32 2001:db9::1";
  for (const inside of ["192.0.2.7", "198.51.100.255", "2001:db8:ffff::1", "2001:db9::1"]) {
    assert.equal(contains(text, inside), true, inside);
  }
  for (const outside of ["192.0.2.8", "198.51.101.0", "2001:dba::1", "2001:db9::2", "127.0.0.1"]) {
    assert.equal(contains(text, outside), false, outside);
  }
});

test("private_ranges are the private networks and this machine", () => {
  for (const inside of ["10.1.2.3", "172.31.0.1", "192.168.1.1", "127.0.0.53", "fd12::1", "::1"]) {
    assert.equal(contains("private_ranges", inside), true, inside);
  }
  for (const outside of ["172.32.0.1", "11.0.0.1", "2001:db8::1", "fe80::1", "169.254.1.1"]) {
    assert.equal(contains("192.0.2.7,private_ranges", outside), false, outside);
  }
});

test("an invalid entry makes the whole list invalid", () => {
  for (const text of [
    "proxy",
    "10.0.0.1/33",
    "::1/129",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "/8",
    "10.0.0",
    "010.0.0.1",
    "fe80::1%eth0",
    "private_ranges/8",
    "10.0.0.1;10.0.0.2",
  ]) {
    assert.equal(parseAddressList(`127.0.0.1, ${text}`), null, text);
  }
  assert.deepEqual(parseAddressList(" , ")?.rules, []);
});

test("the webhook's URL: a site stands for its /webhook, a path for itself", () => {
  assert.equal(webhookUrl("https://shop.example.com")?.href, "https://shop.example.com/webhook");
  assert.equal(webhookUrl("https://example.com/hooks/webhook")?.href, "https://example.com/hooks/webhook");
  for (const text of ["shop.example.com", "ftp://example.com", ""])
    assert.equal(webhookUrl(text), null, text);
});

test("patterns of paths are relative to the repository, and never git's own magic", () => {
  assert.deepEqual(pathPatterns(" apps/shop/**, !**/*.md deploy.sh "), [
    "apps/shop/**",
    "!**/*.md",
    "deploy.sh",
  ]);
  for (const text of [":(exclude)a", "!:/a", ":!a", "/etc", "!", "!!a", "a/../b", ".."]) {
    assert.equal(pathPatterns(text), null, text);
  }
});

test("DEPLOY_AFTER is every check or names, and a comma in brackets belongs to a name", () => {
  assert.equal(checkNames("checks"), "all");
  assert.deepEqual(checkNames("build,  test (22, ubuntu) , ci/lint"), [
    "build",
    "test (22, ubuntu)",
    "ci/lint",
  ]);
  for (const text of ["", " ", "a,,b", "a,"]) assert.equal(checkNames(text), null, text);
});
