import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Host } from "../../../src/receiver/hosts/host.ts";
import { hosts } from "../../../src/receiver/hosts/identify.ts";
import { isJsonObject, type JsonObject } from "../../../src/receiver/hosts/payload.ts";
import { unknownHost } from "../../../src/receiver/hosts/unknown.ts";
import { mainRefs } from "../../../src/receiver/push.ts";
import { selectPush } from "../../../src/receiver/select-push.ts";
import { eventOf, loadDeliveries, payloadOf } from "./fixtures.ts";

const events = [
  "push",
  "ping",
  "Push Hook",
  "System Hook",
  "repo:push",
  "repo:refs_changed",
  "git.receive",
  "git.branch.deletion",
  "branch_updated",
  "tag_deleted",
];

const keys = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "ref",
  "before",
  "after",
  "push",
  "changes",
];
const moreKeys = [
  "new",
  "old",
  "target",
  "hash",
  "msg",
  "topic",
  "trigger",
  "name",
  "type",
  "action",
  "length",
];

const strange: fc.Arbitrary<unknown> = fc.anything({
  key: fc.oneof(fc.constantFrom(...keys, ...moreKeys), fc.string()),
  withSparseArray: true,
  withNullPrototype: true,
  withBigInt: true,
  maxDepth: 5,
});

const fromJson: fc.Arbitrary<unknown> = fc.json({ maxDepth: 5 }).map((text) => JSON.parse(text));

function assertReads(host: Host, event: string, payload: JsonObject): void {
  const reading = host.read(event, payload);
  if (reading.kind !== "push") return;
  assert(reading.pusher === null || typeof reading.pusher === "string");
  for (const { ref, before, after } of reading.changes) {
    assert.equal(typeof ref, "string");
    assert(before === null || typeof before === "string");
    assert(after === null || typeof after === "string");
  }
}

for (const host of [...hosts, unknownHost]) {
  test(`${host.name}: no payload makes the reading throw`, () => {
    const event = fc.oneof(fc.constantFrom(...events), fc.string());
    const payload = fc.oneof(strange, fromJson).filter(isJsonObject);
    fc.assert(
      fc.property(event, payload, (event, payload) => assertReads(host, event, payload)),
      { numRuns: 2_000 },
    );
  });

  test(`${host.name}: no value in place of another makes the reading of a real delivery throw`, () => {
    const deliveries = loadDeliveries(host.name).filter((delivery) => delivery.expect.reading !== null);
    fc.assert(
      fc.property(fc.constantFrom(...deliveries), fc.nat(), strange, (delivery, position, value) => {
        assertReads(host, eventOf(host, delivery), replaceAt(payloadOf(delivery), position, value));
      }),
      { numRuns: 2_000 },
    );
  });

  test(`${host.name}: what is inherited, or named __proto__, is not read`, () => {
    for (const delivery of loadDeliveries(host.name)) {
      if (delivery.expect.reading === null) continue;
      const payload = payloadOf(delivery);
      const parsed: JsonObject = JSON.parse(`{"__proto__": ${delivery.body}}`);
      for (const hollow of [Object.create(payload), parsed])
        assert.notEqual(
          selectPush(host.read(eventOf(host, delivery), hollow), { repository: null, refs: mainRefs }).kind,
          "push",
        );
    }
  });
}

/** The payload with the value at `position`, counted over all its values, replaced by another. */
function replaceAt(payload: JsonObject, position: number, value: unknown): JsonObject {
  const places: { holder: Record<string, unknown>; key: string }[] = [];
  const visit = (holder: Record<string, unknown>): void => {
    for (const key of Object.keys(holder)) {
      places.push({ holder, key });
      const inner = holder[key];
      if (typeof inner === "object" && inner !== null) visit(inner as Record<string, unknown>);
    }
  };
  const changed = structuredClone(payload) as Record<string, unknown>;
  visit(changed);
  const place = places[position % places.length];
  if (place !== undefined) place.holder[place.key] = value;
  return changed;
}
