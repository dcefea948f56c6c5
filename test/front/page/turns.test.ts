import assert from "node:assert/strict";
import { test } from "node:test";
import { createVisitorTurns } from "../../../src/front/page/page.ts";

test("a flood with a thousand credentials keeps no other address waiting, and one without keeps no session at its own", async () => {
  const takeTurn = createVisitorTurns();
  const begun: string[] = [];
  const visit = (name: string, address: string, credential: string | null) =>
    takeTurn({ address, credential }).then(() => begun.push(name));
  const flood = Array.from({ length: 1_000 }, (_, index) => visit("flood", "10.0.0.1", `bogus${index}`));
  const crowd = Array.from({ length: 10 }, () => visit("crowd", "10.0.0.2", null));
  const others = [visit("ann", "10.0.0.2", "session"), visit("bob", "10.0.0.3", null)];
  await Promise.all([...flood, ...crowd, ...others]);
  assert.deepEqual(begun.slice(0, 6), ["flood", "crowd", "bob", "flood", "ann", "flood"]);
  assert.equal(begun.length, 1_012);
});
