import assert from "node:assert/strict";
import { test } from "node:test";
import { unknownHost } from "../../../../src/front/webhook/git-hosts.ts";
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
  test(`the signature of ${host} is claimed even if no header names the event`, () => {
    const delivery = loadDelivery(host, "push-main");
    const claim = unknownHost.claimSignature(headersOf(delivery));
    assert(isAuthentic(claim, delivery.secret, delivery.body));
  });
}

test("a password without a signature is refused with what to set, or what to do instead", () => {
  const claim = unknownHost.claimSignature(headersOf(loadDelivery("unknown", "azure-devops")));
  assert(claim.kind === "unsupported");
  for (const words of ["Authorization", "WEBHOOK_SECRET", "Azure DevOps has no setting", "CATCH_UP_INTERVAL"])
    assert(claim.help.includes(words), `the help does not say "${words}"`);
});

test("a password beside a signature changes nothing", () => {
  for (const host of ["github", "gitlab"]) {
    const delivery = loadDelivery(host, "push-main");
    const headers = headersOf(delivery, { authorization: "Basic aG90cHVzaDo=" });
    assert.equal(unknownHost.claimSignature(headers).kind, delivery.expect.claim);
  }
});

test("without any signature it is missing", () => {
  assert.deepEqual(unknownHost.claimSignature({ "x-gitlab-token": "secret" }), { kind: "missing" });
});
