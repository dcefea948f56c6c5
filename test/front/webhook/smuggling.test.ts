import assert from "node:assert/strict";
import { after, test } from "node:test";
import { githubPush } from "../../harness/delivery.ts";
import { assertProblem } from "../../harness/problems.ts";
import { asChunks, exchange, onTheWire } from "../../harness/raw-http.ts";
import { startService } from "../../harness/service.ts";
import { countRows } from "./row-counter.ts";

const service = await startService({ after }, { script: "#!/bin/sh\nexit 0\n" });
const assertRows = countRows(service);

/** What a request that two programs may read in two ways looks like: its framing, and the body as it goes out. */
type Smuggled = readonly [
  name: string,
  framing: (length: number) => readonly string[],
  wrap?: (body: string) => string,
];

const lengthOf = (length: number) => `Content-Length: ${length}`;

/** Each is a signed push, so that every one that is read gives itself away by a row. */
const malformed: readonly Smuggled[] = [
  [
    "Content-Length and Transfer-Encoding",
    (length) => [lengthOf(length), "Transfer-Encoding: chunked"],
    asChunks,
  ],
  [
    "Transfer-Encoding and Content-Length",
    (length) => ["Transfer-Encoding: chunked", lengthOf(length)],
    asChunks,
  ],
  ["two lengths", (length) => [lengthOf(length), lengthOf(0)]],
  ["two equal lengths", (length) => [lengthOf(length), lengthOf(length)]],
  ["a length with a sign", (length) => [`Content-Length: +${length}`]],
  ["a negative length", (length) => [`Content-Length: -${length}`]],
  ["a list of lengths", (length) => [`Content-Length: ${length}, ${length}`]],
  ["a length in hex", (length) => [`Content-Length: 0x${length.toString(16)}`]],
  ["a length past 2^64", () => ["Content-Length: 18446744073709551617"]],
  ["an empty length", () => ["Content-Length: "]],
  ["chunked, gzip", () => ["Transfer-Encoding: chunked, gzip"], asChunks],
  ["gzip, chunked", () => ["Transfer-Encoding: gzip, chunked"], asChunks],
  ["chunked twice", () => ["Transfer-Encoding: chunked, chunked"], asChunks],
  ["two Transfer-Encodings", () => ["Transfer-Encoding: identity", "Transfer-Encoding: chunked"], asChunks],
  ["xchunked", () => ["Transfer-Encoding: xchunked"], asChunks],
  ["identity", () => ["Transfer-Encoding: identity"], asChunks],
  ["a space before the colon", (length) => [`Content-Length : ${length}`]],
  ["a space before the colon of Transfer-Encoding", () => ["Transfer-Encoding : chunked"], asChunks],
  ["a folded header", (length) => ["X-Folded: a", " Transfer-Encoding: chunked", lengthOf(length)]],
  ["a folded Transfer-Encoding", () => ["Transfer-Encoding:", " chunked"], asChunks],
  ["a bare LF after a header", (length) => [`X-Bare: a\n${lengthOf(length)}`]],
  ["a bare CR in a header", (length) => [`X-Bare: a\r${lengthOf(length)}`]],
  ["NUL in a header", (length) => ["X-Nul: a\0b", lengthOf(length)]],
  ["NUL in a header's name", (length) => ["X-\0: a", lengthOf(length)]],
  ["a header without a colon", (length) => ["X-None", lengthOf(length)]],
  ["a header without a name", (length) => [": a", lengthOf(length)]],
  ["two Hosts", (length) => ["Host: other.test", lengthOf(length)]],
  ["a chunk length in 0x", () => ["Transfer-Encoding: chunked"], (body) => asChunks(body).replace(/^/, "0x")],
  ["a chunk length with a sign", () => ["Transfer-Encoding: chunked"], (body) => `+${asChunks(body)}`],
  [
    "a chunk length past 2^64",
    () => ["Transfer-Encoding: chunked"],
    (body) => `1${"0".repeat(16)}${asChunks(body)}`,
  ],
  [
    "a chunk that is longer than it says",
    () => ["Transfer-Encoding: chunked"],
    (body) => `4\r\n${body}\r\n0\r\n\r\n`,
  ],
  [
    "chunks with a bare LF",
    () => ["Transfer-Encoding: chunked"],
    (body) => asChunks(body).replace("\r\n", "\n"),
  ],
];

function wireOf([, framing, wrap]: Smuggled): string {
  const push = githubPush();
  const head = onTheWire({ ...push, body: "" }, { framing: framing(push.body.length) });
  return head + (wrap ? wrap(push.body.toString()) : push.body.toString());
}

for (const smuggled of malformed) {
  test(`${smuggled[0]}: refused, after what came before, and a push behind it is not read`, async () => {
    const wire = onTheWire(githubPush()) + wireOf(smuggled) + onTheWire(githubPush());
    const { replies, isClosed } = await exchange(service.port, wire);
    assert.deepEqual([replies.length, replies[0]?.status], [2, 202]);
    assertProblem(replies[1] as never, "malformed_request");
    assert.equal(replies[1]?.headers.get("connection"), "close");
    assert(isClosed);
    await assertRows(1);
  });
}

test("a request without Host is refused, and one of HTTP/1.0 without it is not", async () => {
  const { replies, isClosed } = await exchange(
    service.port,
    onTheWire(githubPush()).replace("Host: hotpush.test\r\n", ""),
  );
  assert.equal(replies[0]?.status, 400);
  assert(isClosed);
  await assertRows(0);
  const old = await exchange(service.port, "GET /health HTTP/1.0\r\n\r\n");
  assert.equal(old.replies[0]?.status, 200);
});

test("a body in plain chunks is taken, with small extensions and a trailer that counts for nothing", async () => {
  const push = githubPush();
  const body = push.body.toString();
  const half = Math.floor(body.length / 2);
  const chunks = [body.slice(0, half), body.slice(half)].map(
    (part) => `${part.length.toString(16)};name=value\r\n${part}\r\n`,
  );
  const trailer = "X-Hub-Signature-256: sha256=abc\r\n";
  const wire = `${onTheWire({ ...push, body: "" }, { framing: ["Transfer-Encoding: chunked"] })}${chunks.join("")}0\r\n${trailer}\r\n`;
  const { replies } = await exchange(service.port, wire, { replyCount: 1 });
  assert.equal(replies[0]?.status, 202);
  await assertRows(1);
});
