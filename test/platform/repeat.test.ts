import assert from "node:assert/strict";
import { test } from "node:test";
import { repeat } from "../../src/platform/async.ts";
import { until } from "../harness/until.ts";

test("no look begins while another one is under way", async (t) => {
  const under = Promise.withResolvers<void>();
  let begun = 0;
  const look = () => {
    begun += 1;
    return under.promise;
  };
  const looks = repeat(look, { intervalMs: 60_000, onFault: (error) => assert.fail(String(error)) });
  t.after(looks.stop);
  looks.now();
  looks.now();
  assert.equal(begun, 1);
  under.resolve();
  await until("the next one can begin", () => {
    looks.now();
    return begun === 2;
  });
});
