import assert from "node:assert/strict";
import { test } from "node:test";
import { gitHosts, identifyHost } from "../../../../src/front/webhook/git-hosts.ts";
import { hostsWithDeliveries } from "./fixtures.ts";

test("every host has deliveries that are tested", () => {
  const names = [...gitHosts.map((host) => host.name), "unknown"];
  assert.deepEqual(names.toSorted(), hostsWithDeliveries().toSorted());
});

const senders = [
  ["forgejo", ["x-forgejo-event", "x-gitea-event", "x-gogs-event", "x-github-event"]],
  ["gitea", ["x-gitea-event", "x-gogs-event", "x-github-event"]],
  ["gogs", ["x-gogs-event", "x-github-event"]],
  ["github", ["x-github-event"]],
] as const;

for (const [name, headers] of senders) {
  test(`${headers.join(", ")} are sent by ${name}, in whatever order`, () => {
    for (const order of [headers, headers.toReversed()]) {
      const received = Object.fromEntries(order.map((header) => [header, "push"]));
      assert.equal(identifyHost(received).name, name);
    }
  });
}

test("an empty event header still names its host", () => {
  assert.equal(identifyHost({ "x-forgejo-event": "" }).name, "forgejo");
});

test("the two Bitbuckets are identified by their events and the names of their request ids", () => {
  assert.equal(identifyHost({ "x-event-key": "repo:push" }).name, "bitbucket-cloud");
  assert.equal(identifyHost({ "x-event-key": "repo:fork", "x-request-uuid": "1" }).name, "bitbucket-cloud");
  assert.equal(identifyHost({ "x-event-key": "repo:refs_changed" }).name, "bitbucket-data-center");
  assert.equal(identifyHost({ "x-event-key": "diagnostics:ping" }).name, "bitbucket-data-center");
});

test("any of the headers that Azure DevOps may send names it, and only beside no other host's", () => {
  for (const headers of [
    { "x-vss-subscriptionid": "1" },
    { "x-vss-activityid": "1" },
    { "user-agent": "VSServices/19.245.35522.1 (TfsJobAgent.exe)" },
  ]) {
    assert.equal(identifyHost(headers).name, "azure-devops");
    assert.equal(identifyHost({ ...headers, "x-github-event": "push" }).name, "github");
  }
});

test("headers that name no host are of an unknown one", () => {
  for (const headers of [
    {},
    { "x-hub-signature-256": "sha256=" },
    { "x-request-uuid": "1" },
    { "user-agent": "curl/8.5.0" },
  ])
    assert.equal(identifyHost(headers).name, "unknown");
});
