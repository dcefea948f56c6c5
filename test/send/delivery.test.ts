import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../src/deployments/push.ts";
import { identifyHost } from "../../src/front/webhook/git-hosts.ts";
import { CommandError } from "../../src/problems.ts";
import { makeDelivery, signDelivery, withDryRun } from "../../src/send/delivery.ts";
import type { RepositoryHead } from "../../src/send/repository-head.ts";
import { asReceived, isAuthentic } from "../front/webhook/hosts/fixtures.ts";

const head: RepositoryHead = {
  ref: "refs/heads/main",
  commit: "3f2c1a90d1e5b7c8a4f6e2d3c1b0a9f8e7d6c5b4",
  subject: 'Tides & "quotes" ✓',
  author: { name: "Mara Köhler", email: "mara@example.org" },
  repository: "harbour/tide-board",
};
const hmacSecret = "c9b5d8713d279b6f6baa";
const signingToken = "whsec_JtiGRRxPo1ai3BhIeLgBd+WnzfVsXEtvexTStoIV8IQ=";
const push = { event: "push", secret: hmacSecret, isDryRun: false } as const;

for (const [host, secret] of [
  ["github", hmacSecret],
  ["gitlab", signingToken],
] as const) {
  test(`a push signed as ${host} does is authentic and read as a push of the head`, () => {
    const delivery = makeDelivery(head, { ...push, secret });
    assert.equal(identifyHost(asReceived(delivery.headers)).name, host);
    assert.equal(isSigned(delivery, secret), true);
    assert.deepEqual(readingOf(delivery), {
      kind: "push",
      changes: [{ ref: head.ref, before: head.commit, after: head.commit }],
      repository: head.repository,
      pusher: null,
    });
  });

  test(`a dry run signed as ${host} does is the same push with the mark at its end`, () => {
    const delivery = makeDelivery(head, { ...push, secret, isDryRun: true });
    assert.equal(isSigned(delivery, secret), true);
    assert.match(delivery.body.toString(), /,"hotpush":\{"dryRun":true\}\}$/);
  });
}

test("a ping is GitHub's, also with a signing token", () => {
  for (const secret of [hmacSecret, signingToken]) {
    const delivery = makeDelivery(null, { event: "ping", secret, isDryRun: false });
    assert.equal(isSigned(delivery, secret), true);
    assert.deepEqual(readingOf(delivery), { kind: "ping" });
  }
});

test("a body from a file is sent byte for byte", () => {
  const body = Buffer.from('{ "ref":\t"refs/heads/main" }\r\n');
  assert.deepEqual(signDelivery(body, push).body, body);
});

test("the mark of a dry run is one more member, and nothing else changes", () => {
  assert.equal(withDryRun("{}"), '{"hotpush":{"dryRun":true}}');
  assert.equal(withDryRun('{"a":{}}\n'), '{"a":{},"hotpush":{"dryRun":true}}\n');
  for (const text of ["[]", "null", "", '"}"', "{"]) assert.throws(() => withDryRun(text), CommandError);
});

type Delivery = ReturnType<typeof makeDelivery>;

function isSigned({ headers, body }: Delivery, secret: string): boolean {
  const received = asReceived(headers);
  return isAuthentic(identifyHost(received).claimSignature(received), secret, body.toString());
}

function readingOf({ headers, body }: Delivery) {
  const received = asReceived(headers);
  const host = identifyHost(received);
  const event = String(received[host.eventHeader ?? ""]);
  return host.read(event, JSON.parse(body.toString()) as JsonObject);
}
