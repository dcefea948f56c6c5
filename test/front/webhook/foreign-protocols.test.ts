import assert from "node:assert/strict";
import { after, test } from "node:test";
import { githubPush } from "../../harness/delivery.ts";
import { assertProblem } from "../../harness/problems.ts";
import { exchange, onTheWire } from "../../harness/raw-http.ts";
import { startService } from "../../harness/service.ts";
import { countRows } from "./row-counter.ts";

const service = await startService({ after }, { script: "#!/bin/sh\nexit 0\n" });
const assertRows = countRows(service);

/** The first bytes of a TLS 1.2 handshake. */
const tlsHello = Buffer.from("16030100f1010000ed0303", "hex");

const foreign: readonly [string, string | Buffer][] = [
  ["HTTP/0.9", "GET /health\r\n\r\n"],
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["HTTP/2.0 in a request line", onTheWire(githubPush()).replace("HTTP/1.1", "HTTP/2.0")],
  ["HTTP/1.2", onTheWire(githubPush()).replace("HTTP/1.1", "HTTP/1.2")],
  ["another protocol", "SSH-2.0-OpenSSH_9.2\r\n"],
  ["TLS", Buffer.concat([tlsHello, Buffer.alloc(230, 3)])],
  ["zeros", Buffer.alloc(4_096)],
  ["a response", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
];

for (const [name, bytes] of foreign) {
  test(`${name} is refused and closed`, async () => {
    const { replies, isClosed } = await exchange(service.port, bytes);
    assertProblem(replies[0] as never, "malformed_request");
    assert.equal(replies.length, 1);
    assert(isClosed);
    await assertRows(0);
  });
}

test("99 headers are taken; 100, and a signature behind 3,000, are refused with 431", async () => {
  const { headers, body } = githubPush();
  const { "x-hub-signature-256": signature, ...others } = headers;
  const signedLast = (total: number) => {
    // Host, Content-Length, the signature, and the delivery's own.
    const more = total - Object.keys(others).length - 3;
    const extra = [...Array.from({ length: more }, () => "a: b"), `X-Hub-Signature-256: ${signature}`];
    return onTheWire({ headers: others, body }, { extra });
  };
  for (const total of [100, 3_000]) {
    const { replies, isClosed } = await exchange(service.port, signedLast(total));
    assertProblem(replies[0] as never, "headers_too_large");
    assert(isClosed);
  }
  const { replies } = await exchange(service.port, signedLast(99), { replyCount: 1 });
  assert.equal(replies[0]?.status, 202);
  await assertRows(1);
});

test("two signature headers are refused, whichever of them is right", async () => {
  const push = githubPush();
  const right = push.headers["x-hub-signature-256"] ?? "";
  const wrong = `sha256=${"0".repeat(64)}`;
  const { "x-hub-signature-256": _, ...others } = push.headers;
  for (const pair of [
    [right, wrong],
    [wrong, right],
    [right, right],
  ]) {
    const extra = pair.map((value) => `X-Hub-Signature-256: ${value}`);
    const wire = onTheWire({ headers: others, body: push.body }, { extra });
    const { replies } = await exchange(service.port, wire, { replyCount: 1 });
    assertProblem(replies[0] as never, "signature_invalid");
  }
  const inQuery = onTheWire(
    { headers: others, body: push.body },
    { target: `/webhook?x-hub-signature-256=${right}` },
  );
  assertProblem(
    (await exchange(service.port, inQuery, { replyCount: 1 })).replies[0] as never,
    "signature_missing",
  );
  await assertRows(0);
});
