import assert from "node:assert/strict";
import { test } from "node:test";
import {
  checkNames,
  formatDuration,
  formatSize,
  parseAddressList,
  parseDurationMs,
  parseSizeBytes,
  pathPatterns,
  webhookUrl,
} from "../../src/config/values.ts";
import { isIn } from "../../src/platform/http-server.ts";

test("a list has its addresses and subnets of both families, private_ranges, and nothing else", () => {
  for (const [text, inside, outside] of [
    [
      "192.0.2.7, 198.51.100.0/24\t2001:db8::/32 2001:db9::1",
      "192.0.2.7 198.51.100.255 2001:db8:ffff::1 2001:db9::1",
      "192.0.2.8 198.51.101.0 2001:dba::1 2001:db9::2 127.0.0.1",
    ],
    [
      "192.0.2.7,private_ranges",
      "10.1.2.3 172.31.0.1 192.168.1.1 127.0.0.53 fd12::1 ::1",
      "172.32.0.1 11.0.0.1 2001:db8::1 fe80::1 169.254.1.1",
    ],
  ] as const) {
    const list = parseAddressList(text);
    assert.ok(list);
    const found = `${inside} ${outside}`.split(" ").filter((address) => isIn(list, address));
    assert.deepEqual(found, inside.split(" "));
  }
});

test("the webhook's URL: a site stands for its /webhook, a path for itself", () => {
  assert.equal(webhookUrl("https://shop.example.com")?.href, "https://shop.example.com/webhook");
  assert.equal(webhookUrl("https://example.com/hooks/webhook")?.href, "https://example.com/hooks/webhook");
  for (const text of ["shop.example.com", "ftp://example.com", ""])
    assert.equal(webhookUrl(text), null, text);
});

test("patterns and checks are lists; a comma in brackets belongs to a check's name", () => {
  assert.equal(
    pathPatterns(" apps/shop/**, !**/*.md deploy.sh ")?.join("|"),
    "apps/shop/**|!**/*.md|deploy.sh",
  );
  assert.equal(checkNames("checks"), "all");
  assert.deepEqual(checkNames("build,  test (22, ubuntu)"), ["build", "test (22, ubuntu)"]);
});

test("a duration and a size are numbers with their units", () => {
  const durations = { "0": 0, "0s": 0, "500ms": 500, "007s": 7_000, "30m": 1_800_000, "24h": 86_400_000 };
  for (const [text, ms] of Object.entries(durations)) assert.equal(parseDurationMs(text), ms, text);
  const sizes = { "0B": 0, "1024 B": 1_024, "512 KiB": 2 ** 19, "25MiB": 26_214_400, "2 GiB": 2 ** 31 };
  for (const [text, bytes] of Object.entries(sizes)) assert.equal(parseSizeBytes(text), bytes, text);
});

test("a duration and a size are written for a person", () => {
  const s = 1_000;
  const min = 60_000;
  const durations = {
    "850 ms": 850,
    "12.3 s": 12_340,
    "59.9 s": 59_900,
    "1 min": min,
    "4 min 10 s": 250 * s,
    "2 h 5 min": 125 * min,
  };
  for (const [text, ms] of Object.entries(durations)) assert.equal(formatDuration(ms), text);
  const sizes = { "1023 B": 1023, "1 KiB": 1024, "1.5 KiB": 1536, "25.7 MiB": 27_000_000 };
  for (const [text, bytes] of Object.entries(sizes)) assert.equal(formatSize(bytes), text);
});
