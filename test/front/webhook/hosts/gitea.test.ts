import assert from "node:assert/strict";
import { test } from "node:test";
import { headersOf, hostNamed, isAuthentic, loadDelivery, payloadOf, testDeliveries } from "./fixtures.ts";

const gitea = hostNamed("gitea");

const pushed = loadDelivery("gitea", "push-main");
const signatureHeaders = ["x-gitea-signature", "x-gogs-signature", "x-hub-signature-256"] as const;

testDeliveries(gitea);

test("the JSON text is what is signed in form mode too", () => {
  const json = '{"ref":"refs/heads/main"}';
  const hex = "d8f89f0618acd61fe621aa4e64078c0e2bca15d0b578b7f3eb734f55883c5320";
  const claim = gitea.claimSignature({ "x-gitea-signature": hex });
  assert(isAuthentic(claim, "secret", json));
  assert(!isAuthentic(claim, "secret", `payload=${encodeURIComponent(json)}`));
});

for (const header of signatureHeaders) {
  test(`a wrong ${header} is claimed beside right ones`, () => {
    const wrong = header === "x-hub-signature-256" ? `sha256=${"0".repeat(64)}` : "0".repeat(64);
    const claim = gitea.claimSignature(headersOf(pushed, { [header]: wrong }));
    assert.equal(claim.kind, "body");
    assert(!isAuthentic(claim, pushed.secret, pushed.body));
  });

  test(`an empty ${header} is malformed beside right ones`, () => {
    assert.equal(gitea.claimSignature(headersOf(pushed, { [header]: "" })).kind, "malformed");
  });

  test(`${header} alone is signature enough`, () => {
    const others = signatureHeaders.filter((name) => name !== header);
    const headers = headersOf(pushed, Object.fromEntries(others.map((name) => [name, undefined])));
    assert(isAuthentic(gitea.claimSignature(headers), pushed.secret, pushed.body));
  });
}

test("the old SHA-1 header is not read", () => {
  const claim = gitea.claimSignature(headersOf(pushed, { "x-hub-signature": "sha1=nonsense" }));
  assert(isAuthentic(claim, pushed.secret, pushed.body));
});

test("a deletion or creation that calls itself a push has not the shape of one", () => {
  for (const file of ["branch-deleted", "branch-create-event", "status-event"])
    assert.equal(gitea.read("push", payloadOf(loadDelivery("gitea", file))).kind, "unusable");
});
