import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { JsonObject } from "../../../../src/deployments/push.ts";
import { headersOf, hostNamed, isAuthentic, loadDelivery, payloadOf, testDeliveries } from "./fixtures.ts";

const github = hostNamed("github");

interface EventExamples {
  readonly name: string;
  readonly examples: readonly JsonObject[];
}

/** GitHub's own examples of every event, as collected by Octokit. */
const events: readonly EventExamples[] = JSON.parse(
  readFileSync(new URL(import.meta.resolve("@octokit/webhooks-examples/api.github.com/index.json")), "utf8"),
);

testDeliveries(github);

test("GitHub's own vector is a right signature", () => {
  const hex = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
  const claim = github.claimSignature({ "x-hub-signature-256": `sha256=${hex}` });
  assert(isAuthentic(claim, "It's a Secret to Everybody", "Hello, World!"));
  assert(!isAuthentic(claim, "It's a Secret to Everybody", "Hello World!"));
});

test("the header says push to each of GitHub's examples, and only pushes read as one", () => {
  const readAsPush = events.flatMap(({ name, examples }) =>
    examples.filter((payload) => github.read("push", payload).kind === "push").map(() => name),
  );
  assert.deepEqual(readAsPush, Array(7).fill("push"));
  assert(events.length > 50);
});

test("each of GitHub's examples with its own event header is a ping, a push or another event", () => {
  for (const { name, examples } of events) {
    const kind = name === "ping" || name === "push" ? name : "other-event";
    for (const payload of examples) assert.equal(github.read(name, payload).kind, kind);
  }
});

test("a payload with an action is not a push, whatever else it has", () => {
  const payload = { ...payloadOf(loadDelivery("github", "push-main")), action: "synchronize" };
  assert.equal(github.read("push", payload).kind, "unusable");
});

for (const field of ["ref", "before", "after"]) {
  test(`a push whose ${field} is missing or no text is unusable, and the field is named`, () => {
    const payload = payloadOf(loadDelivery("github", "push-main"));
    for (const value of [undefined, null, 7, {}, ["refs/heads/main"], true]) {
      const reading = github.read("push", { ...payload, [field]: value });
      assert(reading.kind === "unusable");
      assert.equal(reading.field, `/${field}`);
    }
  });
}

test("the old SHA-1 header alone is no signature", () => {
  const headers = headersOf(loadDelivery("github", "push-main"), { "x-hub-signature-256": undefined });
  assert.deepEqual(github.claimSignature(headers), { kind: "missing" });
});
