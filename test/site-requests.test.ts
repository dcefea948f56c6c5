import assert from "node:assert/strict";
import { test } from "node:test";
import { readSiteRequests, type SiteRequests } from "../src/site-requests.ts";

const shop: SiteRequests = {
  host: "shop.example.org",
  requests: 12_431,
  failed: 0,
  brokeOff: 0,
  left: 0,
  before: { answers: 10_000, serverErrors: 2 },
  after: { answers: 2_431, serverErrors: 1 },
};

test("a report that a script made up is not read", () => {
  assert.deepEqual(readSiteRequests([shop]), [shop]);
  for (const wrong of [
    [null],
    [{ ...shop, failed: -1 }],
    [{ ...shop, host: "\u001b[2Jshop" }],
    [{ ...shop, after: { answers: "1", serverErrors: 0 } }],
    Array.from({ length: 51 }, () => shop),
  ])
    assert.equal(readSiteRequests(wrong), null, JSON.stringify(wrong));
});
