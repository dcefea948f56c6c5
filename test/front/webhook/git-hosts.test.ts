import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import type { JsonObject } from "../../../src/deployments/push.ts";
import { claimSignature, gitHosts, readPayload, unknownHost } from "../../../src/front/webhook/git-hosts.ts";
import {
  eventOf,
  headersOf,
  hostNamed,
  hostsWithDeliveries,
  isAuthentic,
  loadDelivery,
  payloadOf,
} from "./fixtures.ts";

test("every host has deliveries that are tested", () => {
  const hosts = [...gitHosts, unknownHost].map(({ name }) => name);
  assert.deepEqual(hosts.toSorted(), hostsWithDeliveries().toSorted());
});

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

test("a push without its ref or its commit is unusable, and the field is named", () => {
  for (const [name, path] of [
    ["github", "ref"],
    ["gitlab", "after"],
    ["bitbucket-cloud", "push/changes/0/new/target/hash"],
    ["bitbucket-data-center", "changes"],
    ["pagure", "msg/branch"],
  ] as const) {
    const delivery = loadDelivery(name, "push-main");
    for (const value of [undefined, 7, {}]) {
      const payload = structuredClone(payloadOf(delivery));
      const members = path.split("/");
      const last = members.pop() ?? "";
      const holder = members.reduce((inner, key) => inner[key] as Record<string, unknown>, { ...payload });
      holder[last] = value;
      const host = hostNamed(name);
      const reading = readPayload(host, eventOf(host, delivery), members.length === 0 ? holder : payload);
      assert(reading.kind === "unusable", `${name} ${path} ${value}`);
      assert.equal(reading.field, `/${path}`);
    }
  }
});

test("a short name stays one, and a tag of that name is no branch", () => {
  const refs = [
    ["main", "refs/heads/main"],
    ["refs/tags/main", "refs/tags/main"],
    ["refs/heads/main", "refs/heads/refs/heads/main"],
  ] as const;
  for (const [branch, ref] of refs) {
    const payload = { topic: "git.receive", msg: { branch, end_commit: "a" } };
    const reading = readPayload(hostNamed("pagure"), "git.receive", payload);
    assert.equal(reading.kind === "push" && reading.changes[0]?.ref, ref);
  }
  for (const [type, ref] of [
    ["branch", "refs/heads/refs/heads/main"],
    ["tag", "refs/tags/refs/heads/main"],
    ["other", "refs/tags/refs/heads/main"],
  ] as const) {
    const change = { old: null, new: { type, name: "refs/heads/main", target: { hash: "a" } } };
    const payload = { push: { changes: [change] } };
    const reading = readPayload(hostNamed("bitbucket-cloud"), "repo:push", payload);
    assert.equal(reading.kind === "push" && reading.changes[0]?.ref, ref);
  }
});
