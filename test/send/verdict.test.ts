import assert from "node:assert/strict";
import { test } from "node:test";
import { readVerdict } from "../../src/send/verdict.ts";

function textOf(answer: object): string {
  const body = Buffer.from(JSON.stringify(answer));
  return readVerdict({ status: 202, headers: {}, body }, new URL("http://localhost:9000/webhook"), null).text;
}

test("a push that waits is reported with its reason, also before it has a number", () => {
  const deployment = { id: 7, ref: "refs/heads/main", commit: "0b77a2e9".repeat(5), state: "queued" };
  const reached = "A signed push reached the service";
  const recorded = `${reached}: deployment 7 of 0b77a2e is queued.`;
  assert.equal(textOf({ status: "accepted", deployment }), recorded);
  assert.equal(textOf({ status: "accepted", deployment, detail: "Paused." }), `${recorded} Paused.`);
  const stored = { status: "accepted", delivery: { id: 3 }, detail: "It is stored." };
  assert.equal(textOf(stored), `${reached}. It is stored.`);
  const deploy = { ref: deployment.ref, commit: deployment.commit, when: "resumed" };
  assert.match(textOf({ status: "dry-run", would: { deploy } }), /0b77a2e, when its queue is resumed/);
});

test("a dry run whose result this version does not know is answered, not a crash", () => {
  const reached = /^A signed test push reached the service, .* Update Hotpush here\.$/;
  for (const would of [{ wait: { detail: "Later." } }, {}, undefined]) {
    assert.match(textOf({ status: "dry-run", would }), reached);
  }
});
