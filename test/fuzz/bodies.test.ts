import assert from "node:assert/strict";
import { after } from "node:test";
import fc from "fast-check";
import { githubPush } from "../harness/delivery.ts";
import { exchange, onTheWire } from "../harness/raw-http.ts";
import { startReceiver } from "../harness/receiver.ts";
import { edgesOf, fuzz, statusesFrom } from "./fuzz.ts";

const receiver = await startReceiver({ after });
const perConnection = 25;
/** An incomplete request gets no answer. */
const deadlineMs = 200;
const all = { minLength: perConnection, maxLength: perConnection };

const cuts = fc.array(fc.nat(2_000), { maxLength: 8 });
const extension = fc.constantFrom("", "", ";a", ";a=b", ';a="b c"');

fuzz(
  "a signed push is accepted in any pieces, and refused if one byte of it differs",
  fc.asyncProperty(
    fc.array(
      fc.record({ mark: fc.string({ unit: "grapheme" }), cuts, extension, flipped: fc.option(fc.nat()) }),
      all,
    ),
    async (deliveries) => {
      const wires = deliveries.map(({ mark, cuts, extension, flipped }) => {
        const { headers, body } = githubPush({ mark });
        const sent = Buffer.from(body);
        if (flipped !== null) {
          const at = flipped % sent.length;
          sent[at] = (sent[at] ?? 0) ^ (1 << (flipped % 8));
        }
        const empty = onTheWire({ headers, body: "" }, { framing: ["Transfer-Encoding: chunked"] });
        return empty + inChunks(sent.toString("latin1"), cuts, extension);
      });
      const expected = deliveries.map(({ flipped }) => (flipped === null ? 202 : 401));
      assert.deepEqual(await statusesFrom(receiver.port, wires), expected);
      assert.deepEqual(receiver.faults, []);
    },
  ),
  2_500,
  perConnection,
);

/** Header lines about the length: correct ones, and ones that programs interpret differently. */
const distraction = fc.constantFrom(
  ...["0", "00", "+0", "0x0", "", "0, 0"].map((length) => `Content-Length: ${length}`),
  "Content-Length : 0",
  "content-length:\t0",
  "X-Folded: a\r\n Content-Length: 0",
  ...["chunked", "identity", "gzip, chunked", "xchunked", "chunked, identity", "\vchunked", '"chunked"'].map(
    (coding) => `Transfer-Encoding: ${coding}`,
  ),
  "Transfer-Encoding : chunked",
  "transfer-encoding:\tchunked",
  "X-Header: a\rTransfer-Encoding: chunked",
  "X-Header: a\nContent-Length: 0",
  "Upgrade: h2c",
  "Expect: 100-continue",
);

const seen = { sent: 0, answered: 0 };
fuzz(
  "a signed push within the body of another request is never taken for a request",
  fc.asyncProperty(
    fc.array(
      fc.tuple(
        fc.boolean(),
        fc.array(distraction, { maxLength: 3 }),
        fc.array(distraction, { maxLength: 2 }),
        cuts,
      ),
      all,
    ),
    async (requests) => {
      const wires = requests.map(([isChunked, before, behind, cuts]) => {
        const inner = onTheWire(githubPush());
        const right = isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${inner.length}`;
        const head = ["POST /webhook HTTP/1.1", "Host: a", ...before, right, ...behind].join("\r\n");
        return `${head}\r\n\r\n${isChunked ? inChunks(inner, cuts, "") : inner}`;
      });
      receiver.pushes.length = 0;
      const send = (wire: string) =>
        exchange(receiver.port, Buffer.from(wire, "latin1"), { replyCount: 1, deadlineMs }).then(
          ({ replies }) => replies.length,
          () => 0,
        );
      for (const count of await Promise.all(wires.map(send))) seen.answered += count;
      seen.sent += wires.length;
      assert.deepEqual(receiver.pushes, []);
      assert.deepEqual(receiver.faults, []);
    },
  ),
  1_500,
  perConnection,
  () => assert.ok(seen.answered > seen.sent / 10, "many were answered"),
);

/** `body` as chunks that end at `cuts`, with the final chunk. */
function inChunks(body: string, cuts: readonly number[], extension: string): string {
  const edges = edgesOf(body.length, cuts);
  const chunks = edges.slice(1).map((end, index) => body.slice(edges[index], end));
  return chunks
    .filter(Boolean)
    .concat("")
    .map((chunk) => `${chunk.length.toString(16)}${extension}\r\n${chunk}${chunk && "\r\n"}`)
    .join("")
    .concat("\r\n");
}
