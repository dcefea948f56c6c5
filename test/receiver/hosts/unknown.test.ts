import assert from "node:assert/strict";
import { test } from "node:test";
import { unknownHost } from "../../../src/receiver/hosts/unknown.ts";
import { headersOf, isAuthentic, loadDelivery, testDeliveries } from "./fixtures.ts";

testDeliveries(unknownHost);

const signingHosts = [
  "bitbucket-cloud",
  "bitbucket-data-center",
  "forgejo",
  "gitea",
  "github",
  "gitlab",
  "gitness",
  "gogs",
  "harness",
  "pagure",
];

for (const host of signingHosts) {
  test(`the signature of ${host} is claimed even where no header names the event`, () => {
    const delivery = loadDelivery(host, "push-main");
    const claim = unknownHost.claimSignature(headersOf(delivery));
    assert(isAuthentic(claim, delivery.secret, delivery.body));
  });
}

test("without any signature it is missing", () => {
  assert.deepEqual(unknownHost.claimSignature({ "x-gitlab-token": "secret" }), { kind: "missing" });
});
