import assert from "node:assert/strict";
import { after, test } from "node:test";
import { assertProblem } from "../../harness/assert-problem.ts";
import { githubPush } from "../../harness/delivery.ts";
import { asChunks, exchange, onTheWire } from "../../harness/raw-http.ts";
import { startService } from "../../harness/service.ts";
import { countRows } from "./row-counter.ts";

const service = await startService({ after }, { script: "#!/bin/sh\nexit 0\n" });
const assertRows = countRows(service);

/** What a request that two programs may read in two ways looks like: its framing, and the body as it goes out. */
interface Smuggled {
  readonly name: string;
  readonly framing: (length: number) => readonly string[];
  readonly wrap?: (body: string) => string;
}

const lengthOf = (length: number) => `Content-Length: ${length}`;

/** Each is a signed push, so that every one that is read gives itself away by a row. */
const malformed: readonly Smuggled[] = [
  {
    name: "Content-Length and Transfer-Encoding",
    framing: (length) => [lengthOf(length), "Transfer-Encoding: chunked"],
    wrap: asChunks,
  },
  {
    name: "Transfer-Encoding and Content-Length",
    framing: (length) => ["Transfer-Encoding: chunked", lengthOf(length)],
    wrap: asChunks,
  },
  { name: "two lengths", framing: (length) => [lengthOf(length), lengthOf(0)] },
  { name: "two equal lengths", framing: (length) => [lengthOf(length), lengthOf(length)] },
  { name: "a length with a sign", framing: (length) => [`Content-Length: +${length}`] },
  { name: "a negative length", framing: (length) => [`Content-Length: -${length}`] },
  { name: "a list of lengths", framing: (length) => [`Content-Length: ${length}, ${length}`] },
  { name: "a length in hex", framing: (length) => [`Content-Length: 0x${length.toString(16)}`] },
  { name: "a length past 2^64", framing: () => ["Content-Length: 18446744073709551617"] },
  { name: "an empty length", framing: () => ["Content-Length: "] },
  { name: "chunked, gzip", framing: () => ["Transfer-Encoding: chunked, gzip"], wrap: asChunks },
  { name: "gzip, chunked", framing: () => ["Transfer-Encoding: gzip, chunked"], wrap: asChunks },
  { name: "chunked twice", framing: () => ["Transfer-Encoding: chunked, chunked"], wrap: asChunks },
  {
    name: "two Transfer-Encodings",
    framing: () => ["Transfer-Encoding: identity", "Transfer-Encoding: chunked"],
    wrap: asChunks,
  },
  { name: "xchunked", framing: () => ["Transfer-Encoding: xchunked"], wrap: asChunks },
  { name: "identity", framing: () => ["Transfer-Encoding: identity"], wrap: asChunks },
  { name: "a space before the colon", framing: (length) => [`Content-Length : ${length}`] },
  {
    name: "a space before the colon of Transfer-Encoding",
    framing: () => ["Transfer-Encoding : chunked"],
    wrap: asChunks,
  },
  {
    name: "a folded header",
    framing: (length) => ["X-Folded: a", " Transfer-Encoding: chunked", lengthOf(length)],
  },
  {
    name: "a folded Transfer-Encoding",
    framing: () => ["Transfer-Encoding:", " chunked"],
    wrap: asChunks,
  },
  { name: "a bare LF after a header", framing: (length) => [`X-Bare: a\n${lengthOf(length)}`] },
  { name: "a bare CR in a header", framing: (length) => [`X-Bare: a\r${lengthOf(length)}`] },
  { name: "NUL in a header", framing: (length) => ["X-Nul: a\0b", lengthOf(length)] },
  { name: "NUL in a header's name", framing: (length) => ["X-\0: a", lengthOf(length)] },
  { name: "a header without a colon", framing: (length) => ["X-None", lengthOf(length)] },
  { name: "a header without a name", framing: (length) => [": a", lengthOf(length)] },
  { name: "two Hosts", framing: (length) => ["Host: other.test", lengthOf(length)] },
  {
    name: "a chunk length in 0x",
    framing: () => ["Transfer-Encoding: chunked"],
    wrap: (body) => asChunks(body).replace(/^/, "0x"),
  },
  {
    name: "a chunk length with a sign",
    framing: () => ["Transfer-Encoding: chunked"],
    wrap: (body) => `+${asChunks(body)}`,
  },
  {
    name: "a chunk length past 2^64",
    framing: () => ["Transfer-Encoding: chunked"],
    wrap: (body) => `1${"0".repeat(16)}${asChunks(body)}`,
  },
  {
    name: "a chunk that is longer than it says",
    framing: () => ["Transfer-Encoding: chunked"],
    wrap: (body) => `4\r\n${body}\r\n0\r\n\r\n`,
  },
  {
    name: "chunks with a bare LF",
    framing: () => ["Transfer-Encoding: chunked"],
    wrap: (body) => asChunks(body).replace("\r\n", "\n"),
  },
];

function wireOf({ framing, wrap }: Smuggled): string {
  const push = githubPush();
  const head = onTheWire({ ...push, body: "" }, { framing: framing(push.body.length) });
  return head + (wrap ? wrap(push.body.toString()) : push.body.toString());
}

for (const smuggled of malformed) {
  test(`${smuggled.name}: refused, closed, and a push smuggled behind it is not read`, async () => {
    const { replies, isClosed } = await exchange(service.port, wireOf(smuggled) + onTheWire(githubPush()));
    assert.equal(replies.length, 1);
    assertProblem(replies[0] as never, "malformed_request");
    assert.equal(replies[0]?.headers.get("connection"), "close");
    assert(isClosed);
    await assertRows(0);
  });

  test(`${smuggled.name}: what came before it is answered first`, async () => {
    const { replies } = await exchange(service.port, onTheWire(githubPush()) + wireOf(smuggled));
    assert.deepEqual(
      replies.map(({ status }) => status),
      [202, 400],
    );
    await assertRows(1);
  });
}

test("Transfer-Encoding on HTTP/1.0 is refused", async () => {
  const push = githubPush();
  const wire = onTheWire(
    { ...push, body: asChunks(push.body.toString()) },
    { framing: ["Transfer-Encoding: chunked"] },
  );
  const { replies } = await exchange(service.port, wire.replace("HTTP/1.1", "HTTP/1.0"));
  assertProblem(replies[0] as never, "malformed_request");
  await assertRows(0);
});

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
