import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { identifyHost } from "../../src/receiver/hosts/identify.ts";
import { isJsonObject, type JsonObject } from "../../src/receiver/hosts/payload.ts";
import { makeDelivery, NotMarkableError, signDelivery, withDryRun } from "../../src/sender/delivery.ts";
import type { RepositoryHead } from "../../src/sender/repository-head.ts";
import { type GitHost, gitHosts } from "../../src/setup/git-host.ts";
import { asReceived, isAuthentic, loadDelivery, payloadOf } from "../receiver/hosts/fixtures.ts";

const head: RepositoryHead = {
  ref: "refs/heads/main",
  commit: "3f2c1a90d1e5b7c8a4f6e2d3c1b0a9f8e7d6c5b4",
  before: "0d1e5b7c8a4f6e2d3c1b0a9f8e7d6c5b43f2c1a9",
  subject: 'Tides & "quotes" ✓',
  author: { name: "Mara Köhler", email: "mara@example.org" },
  repository: "harbour/tide-board",
};
const secrets = {
  gitlab: "whsec_JtiGRRxPo1ai3BhIeLgBd+WnzfVsXEtvexTStoIV8IQ=",
  other: "c9b5d8713d279b6f6baa",
};

function secretFor(host: GitHost): string {
  return host === "gitlab" ? secrets.gitlab : secrets.other;
}

function options(
  host: GitHost,
  more: { readonly isDryRun?: boolean; readonly event?: "push" | "ping" } = {},
) {
  return { host, event: "push" as const, secret: secretFor(host), isDryRun: false, ...more };
}

for (const host of gitHosts) {
  const folder = host === "bitbucket" ? "bitbucket-cloud" : host;
  describe(`a push as ${host} sends it`, () => {
    const recorded = loadDelivery(folder, "push-main");
    const { headers, body } = makeDelivery(head, options(host));
    const received = identifyHost(asReceived(headers));

    test("is taken for one of this host, signed right, and says what it should", () => {
      assert.equal(received.name, folder);
      const claim = received.claimSignature(asReceived(headers));
      assert.equal(isAuthentic(claim, secretFor(host), body.toString()), true);
      const event =
        received.eventHeader === null ? "" : (asReceived(headers)[received.eventHeader] as string);
      const reading = received.read(event, JSON.parse(body.toString()) as JsonObject);
      assert.deepEqual(reading, {
        kind: "push",
        changes: [{ ref: head.ref, before: head.before, after: head.commit }],
        repository: head.repository,
      });
    });

    test("has no header and no field that the real one has not, and every signature of it but SHA-1", () => {
      const real = asReceived(recorded.headers);
      for (const name of Object.keys(headers)) assert.ok(name in real, name);
      const signatures = Object.keys(real).filter((name) => /signature/.test(name));
      const old = host === "pagure" ? ["x-pagure-signature"] : ["x-hub-signature"];
      for (const name of signatures) {
        const isOld = old.includes(name) && String(real[name]).length < 50;
        assert.equal(name in headers, !isOld, name);
      }
      assertWithin(JSON.parse(body.toString()), payloadOf(recorded), "");
    });

    test("ends as the real one does, and a dry run is that with its mark at the end", () => {
      assert.equal(body.toString().endsWith("\n"), recorded.body.endsWith("\n"));
      const marked = makeDelivery(head, options(host, { isDryRun: true }));
      const claim = received.claimSignature(asReceived(marked.headers));
      assert.equal(isAuthentic(claim, secretFor(host), marked.body.toString()), true);
      assert.match(marked.body.toString(), /,"hotpush":\{"dryRun":true\}\}\n?$/);
    });
  });
}

test("a first commit is a push of a new branch", () => {
  const first = { ...head, before: "0".repeat(40) };
  for (const host of gitHosts) {
    const { headers, body } = makeDelivery(first, options(host));
    const received = identifyHost(asReceived(headers));
    const event = asReceived(headers)[received.eventHeader ?? ""] as string;
    const reading = received.read(event, JSON.parse(body.toString()) as JsonObject);
    assert.equal(reading.kind === "push" && reading.changes[0]?.after, head.commit, host);
  }
});

for (const host of ["github", "bitbucket-data-center"] as const) {
  test(`a ping of ${host} is read as one`, () => {
    const { headers, body } = makeDelivery(null, options(host, { event: "ping" }));
    const received = identifyHost(asReceived(headers));
    const event = asReceived(headers)[received.eventHeader ?? ""] as string;
    assert.deepEqual(received.read(event, JSON.parse(body.toString()) as JsonObject), { kind: "ping" });
  });
}

test("a body from a file is sent to the byte", () => {
  const body = Buffer.from('{ "ref":\t"refs/heads/main" }\r\n');
  assert.deepEqual(signDelivery(body, options("github")).body, body);
});

test("the mark is a member like any other, and nothing else changes", () => {
  assert.equal(withDryRun("{}"), '{"hotpush":{"dryRun":true}}');
  assert.equal(withDryRun('{"a":{}}\n'), '{"a":{},"hotpush":{"dryRun":true}}\n');
  for (const text of ["[]", "null", "", '"}"', "{"]) assert.throws(() => withDryRun(text), NotMarkableError);
});

/** Every member of `made` is in `real` too, and of the same kind, at every depth. */
function assertWithin(made: unknown, real: unknown, path: string): void {
  if (Array.isArray(made)) {
    assert.ok(Array.isArray(real), path);
    if (made[0] !== undefined) assertWithin(made[0], real[0], `${path}[0]`);
  } else if (isJsonObject(made)) {
    assert.ok(isJsonObject(real), path);
    for (const [name, value] of Object.entries(made)) {
      assert.ok(Object.hasOwn(real, name), `${path}.${name}`);
      assertWithin(value, real[name], `${path}.${name}`);
    }
  } else if (made !== null) assert.equal(typeof made, typeof real, path);
}
