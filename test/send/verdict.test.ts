import assert from "node:assert/strict";
import { test } from "node:test";
import { readVerdict } from "../../src/send/verdict.ts";

const url = new URL("http://localhost:9000/webhook");
const commit = "0b77a2e9".repeat(5);
const deployment = { id: 7, ref: "refs/heads/main", commit, state: "queued" };
const deploy = { ref: deployment.ref, commit, when: "resumed" };
const problem = { type: "urn:hotpush:problem:push_invalid", code: "push_invalid", detail: "No ref." };

const answers: readonly (readonly [outcome: string, isGood: boolean, status: number, body: unknown])[] = [
  ["pong", true, 200, { status: "pong" }],
  ["accepted", true, 202, { status: "accepted", deployment }],
  ["accepted", true, 202, { status: "accepted", delivery: { id: 3 }, detail: "It is stored." }],
  ["duplicate", false, 200, { status: "duplicate", deployment, detail: "Already deployed." }],
  ["ignored", false, 200, { status: "ignored", detail: "A tag." }],
  ["would-deploy", true, 200, { status: "dry-run", would: { deploy } }],
  ["would-ignore", false, 200, { status: "dry-run", would: { ignore: { detail: "A tag." } } }],
  ["would-be-duplicate", false, 200, { status: "dry-run", would: { duplicate: { detail: "Known." } } }],
  ["would-fail", false, 200, { status: "dry-run", would: { fail: { detail: "No script." } } }],
  ["would-fail", false, 200, { status: "dry-run", would: { wait: { detail: "Of a newer version." } } }],
  ["would-fail", false, 200, { status: "dry-run" }],
  ["push_invalid", false, 422, problem],
  ["unauthorized", false, 401, { ...problem, code: "signature_invalid" }],
  ["redirected", false, 308, ""],
  ["not-hotpush", false, 404, "<html>"],
  ["not-hotpush", false, 502, "<html>"],
  ["not-hotpush", false, 200, { type: 7 }],
];

for (const [outcome, isGood, status, answer] of answers)
  test(`${status} with ${JSON.stringify(answer).slice(0, 40)} is ${outcome}`, () => {
    const body = Buffer.from(JSON.stringify(answer));
    const verdict = readVerdict({ status, headers: {}, body }, url, null);
    assert.deepEqual([verdict.outcome, verdict.isGood], [outcome, isGood]);
    const { detail = "" } = Object(answer) as { detail?: string };
    assert.ok(outcome === "unauthorized" || verdict.text.includes(detail), verdict.text);
  });

test("no answer is unreachable, whatever the reason", () => {
  for (const code of ["ECONNREFUSED", "ENOTFOUND", "CERT_HAS_EXPIRED", "ECONNRESET", "EWHATEVER"]) {
    const error = Object.assign(new Error("the reason"), { code });
    const { outcome, isGood, text } = readVerdict(error, url, null);
    assert.deepEqual([outcome, isGood], ["unreachable", false]);
    assert.ok(text.includes("the reason"));
  }
});
