import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import type { JsonObject } from "../../../src/deployments/push.ts";
import { claimSignature, gitHosts, readPayload, unknownHost } from "../../../src/front/webhook/git-hosts.ts";
import { eventOf, headersOf, hostNamed, isAuthentic, loadDelivery, payloadOf } from "./fixtures.ts";

test("what a payload inherits, or has in a member __proto__, is not read", () => {
  for (const { name } of gitHosts) {
    const [host, delivery] = [hostNamed(name), loadDelivery(name, "push-main")];
    const parsed: JsonObject = JSON.parse(`{"__proto__": ${delivery.body}}`);
    for (const hollow of [Object.create(payloadOf(delivery)), parsed])
      assert.notEqual(readPayload(host, eventOf(host, delivery), hollow).kind, "push", name);
  }
});

const pushed = loadDelivery("forgejo", "push-main");
const giteaHeaders = ["x-forgejo-signature", "x-gitea-signature", "x-gogs-signature", "x-hub-signature-256"];

test("of several signatures each that is there counts, and one is enough", () => {
  for (const header of giteaHeaders) {
    const claim = (changes: IncomingHttpHeaders) =>
      claimSignature(hostNamed("forgejo"), headersOf(pushed, changes));
    const zeros = header.startsWith("x-hub") ? `sha256=${"0".repeat(64)}` : "0".repeat(64);
    assert(!isAuthentic(claim({ [header]: zeros }), pushed.secret, pushed.body));
    assert.equal(claim({ [header]: "" }).kind, "malformed");
    const others = giteaHeaders.filter((name) => name !== header).map((name) => [name, undefined]);
    assert(isAuthentic(claim(Object.fromEntries(others)), pushed.secret, pushed.body));
  }
});

test("a signature is claimed even if no header names the event, and no password in its place", () => {
  for (const name of ["forgejo", "github", "gitlab", "gitness", "harness", "pagure"]) {
    const delivery = loadDelivery(name, "push-main");
    const claim = claimSignature(unknownHost, headersOf(delivery, { authorization: "Basic aG90cHVzaDo=" }));
    assert(isAuthentic(claim, delivery.secret, delivery.body), name);
  }
  assert.equal(claimSignature(unknownHost, { authorization: "Basic aG90cHVzaDo=" }).kind, "unsupported");
  assert.equal(claimSignature(unknownHost, { "x-gitlab-token": "secret" }).kind, "missing");
  const both = headersOf(loadDelivery("gitlab", "push-main"), { "x-gitlab-token": "secret" });
  assert.equal(claimSignature(hostNamed("gitlab"), both).kind, "standard-webhooks");
});

test("an event that calls itself a push in its header is none by its signed body", () => {
  for (const [name, file, event] of [
    ["forgejo", "branch-deleted", "push"],
    ["gitea", "status-event", "push"],
    ["gitlab", "merge-request-event", "Push Hook"],
    ["bitbucket-data-center", "mirror-event", "repo:refs_changed"],
    ["gitness", "pull-request-event", "branch_updated"],
  ] as const) {
    const { kind } = readPayload(hostNamed(name), event, payloadOf(loadDelivery(name, file)));
    assert.notEqual(kind, "push", `${name} ${file}`);
  }
});

test("a short name stays one, and a tag of that name is no branch", () => {
  const pagure = (branch: string) => ({ topic: "git.receive", msg: { branch, end_commit: "a" } });
  const bitbucket = (type: string) => {
    const change = { old: null, new: { type, name: "refs/heads/main", target: { hash: "a" } } };
    return { push: { changes: [change] } };
  };
  for (const [host, event, payload, ref] of [
    ["pagure", "git.receive", pagure("main"), "refs/heads/main"],
    ["pagure", "git.receive", pagure("refs/tags/main"), "refs/tags/main"],
    ["pagure", "git.receive", pagure("refs/heads/main"), "refs/heads/refs/heads/main"],
    ["bitbucket-cloud", "repo:push", bitbucket("branch"), "refs/heads/refs/heads/main"],
    ["bitbucket-cloud", "repo:push", bitbucket("tag"), "refs/tags/refs/heads/main"],
    ["bitbucket-cloud", "repo:push", bitbucket("other"), "refs/tags/refs/heads/main"],
  ] as const) {
    const reading = readPayload(hostNamed(host), event, payload);
    assert.equal(reading.kind === "push" && reading.changes[0]?.ref, ref);
  }
});
