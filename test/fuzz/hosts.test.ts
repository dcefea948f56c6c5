import assert from "node:assert/strict";
import fc from "fast-check";
import { isCommitId, type JsonObject } from "../../src/deployments/push.ts";
import { gitHosts, type Host, readPayload } from "../../src/front/webhook/git-hosts.ts";
import { eventOf, loadDeliveries, payloadOf } from "../front/webhook/fixtures.ts";
import { fuzz, replaceAt } from "./fuzz.ts";

const keys =
  "__proto__ constructor toString ref before after push changes new old target hash msg topic trigger name type action length";

const strange: fc.Arbitrary<unknown> = fc.anything({
  key: fc.oneof(fc.constantFrom(...keys.split(" ")), fc.string()),
  withSparseArray: true,
  withNullPrototype: true,
  withBigInt: true,
  maxDepth: 5,
});

/** Other values for a name or a ref. */
const strangeValue = fc.oneof(strange, fc.string({ unit: "binary", maxLength: 300 }));

/** Checks that what is read has the types that the receiver relies on. */
function assertReads(host: Host, event: string, payload: JsonObject): void {
  const reading = readPayload(host, event, payload);
  if (reading.kind !== "push") return;
  for (const { ref, before, after } of reading.changes) {
    assert.equal(typeof ref, "string");
    assert(before === null || isCommitId(before));
    assert(after === null || typeof after === "string");
  }
  for (const name of [reading.repository, reading.pusher]) assert(name === null || typeof name === "string");
}

for (const host of gitHosts.filter(({ push }) => push !== null)) {
  const deliveries = loadDeliveries(host.name).filter((delivery) => delivery.expect.reading !== null);
  fuzz(
    `${host.name}: no replaced value in a real delivery makes the reader throw`,
    fc.property(fc.constantFrom(...deliveries), fc.nat(), strangeValue, (delivery, position, value) => {
      assertReads(host, eventOf(host, delivery), replaceAt(payloadOf(delivery), position, value));
    }),
    2_000,
  );
}
