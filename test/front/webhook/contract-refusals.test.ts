import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { HttpProblemCode } from "../../../src/problems.ts";
import { type Delivery, deliver, githubDelivery, githubPush, withHeader } from "../../harness/delivery.ts";
import { assertProblem } from "../../harness/problems.ts";
import { recordedDeliveryCount } from "../../harness/records.ts";
import { startService } from "../../harness/service.ts";

const shared = await startService({ after });

function without({ headers, body }: Delivery, name: string): Delivery {
  return { headers: Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name)), body };
}

const refused: readonly [string, HttpProblemCode, Delivery, string?][] = [
  ["no signature", "signature_missing", without(githubPush(), "x-hub-signature-256")],
  ["a malformed signature", "signature_invalid", withHeader(githubPush(), "x-hub-signature-256", "sha256=")],
  ["a wrong signature", "signature_invalid", githubPush({}, "another secret than the right one")],
  [
    "GitLab's plain token",
    "signature_unsupported",
    {
      headers: {
        "content-type": "application/json",
        "x-gitlab-event": "Push Hook",
        "x-gitlab-token": "some-token",
      },
      body: "{}",
    },
  ],
  ["a signed body that is no JSON", "invalid_json", githubDelivery("push", "{")],
  ["a signed empty body", "invalid_json", githubDelivery("push", "")],
  ["a byte order mark", "invalid_json", githubDelivery("push", "\ufeff{}")],
  ["bad UTF-8", "invalid_encoding", githubDelivery("push", Buffer.from('{"ref":"\xff"}', "latin1"))],
  ["an array", "invalid_payload", githubDelivery("push", "[]"), "pointer"],
  ["null", "invalid_payload", githubDelivery("push", "null"), "pointer"],
  ["a push without ref", "invalid_payload", githubDelivery("push", "{}"), "pointer"],
  ["an upper-case commit", "invalid_payload", githubPush({ after: "A".repeat(40) }), "pointer"],
  [
    "a form",
    "unsupported_media_type",
    withHeader(githubPush(), "content-type", "application/x-www-form-urlencoded"),
  ],
  ["a type that is none", "unsupported_media_type", withHeader(githubPush(), "content-type", ";")],
  ["a compressed body", "unsupported_encoding", withHeader(githubPush(), "content-encoding", "gzip")],
];

for (const [what, code, delivery, member] of refused) {
  test(`${what} is refused with ${code}`, async () => {
    const before = recordedDeliveryCount(shared.statePath);
    const reply = await deliver(shared.url, delivery);
    assertProblem({ ...reply, body: reply.json }, code, member ? [member] : []);
    const isUnsigned = reply.status === 401;
    assert.equal(reply.headers.get("www-authenticate"), isUnsigned ? 'HMAC-SHA256 realm="webhook"' : null);
    assert.equal(recordedDeliveryCount(shared.statePath), before);
  });
}
