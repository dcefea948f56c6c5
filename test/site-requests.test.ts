import assert from "node:assert/strict";
import { test } from "node:test";
import {
  failedText,
  readSiteRequests,
  requestsText,
  type SiteRequests,
  share,
} from "../src/site-requests.ts";

const shop: SiteRequests = {
  host: "shop.example.org",
  requests: 12_431,
  failed: 0,
  brokeOff: 0,
  left: 0,
  before: { answers: 10_000, serverErrors: 2 },
  after: { answers: 2_431, serverErrors: 1 },
};

test("shares are of the answers of that version only, and none is given for a version without answers", () => {
  assert.equal(share({ answers: 100_000, serverErrors: 1 }), "under 0.01 %");
  assert.equal(share({ answers: 3, serverErrors: 3 }), "100 %");
  const onlyOld = { ...shop, after: { answers: 0, serverErrors: 0 } };
  assert.match(requestsText(onlyOld), /2 with 5xx \(before 0\.02 %\)$/);
  const good = { answers: 5, serverErrors: 0 };
  assert.match(requestsText({ ...shop, before: good, after: good }), /the app answered none with 5xx$/);
});

test("the failed requests of several hosts are added", () => {
  assert.equal(failedText([shop, { ...shop, failed: 2 }]), "2 of 24,862");
  assert.equal(failedText([]), "0 of 0");
});

test("a report that a script made up is not read", () => {
  assert.deepEqual(readSiteRequests([shop]), [shop]);
  for (const wrong of [
    null,
    {},
    [null],
    [{ ...shop, failed: -1 }],
    [{ ...shop, requests: 1.5 }],
    [{ ...shop, host: "\u001b[2Jshop" }],
    [{ ...shop, host: "x".repeat(300) }],
    [{ ...shop, after: { answers: "1", serverErrors: 0 } }],
    Array.from({ length: 51 }, () => shop),
  ])
    assert.equal(readSiteRequests(wrong), null, JSON.stringify(wrong));
});
