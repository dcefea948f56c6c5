import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, type IncomingMessage, METHODS, request } from "node:http";
import { connect } from "node:net";
import { after, test } from "node:test";
import { deliver, githubDelivery, githubPush } from "../../harness/delivery.ts";
import { assertHeaders, assertProblem } from "../../harness/problems.ts";
import { asChunks, exchange, onTheWire, parseReplies, type RawReply } from "../../harness/raw-http.ts";
import { recordedDeliveryCount } from "../../harness/records.ts";
import { startService } from "../../harness/service.ts";

const limitBytes = 1024 ** 2;
const service = await startService({ after }, { env: { WEBHOOK_BODY_LIMIT: "1 MiB" } });
const chunked = "Transfer-Encoding: chunked";

async function firstReply(bytes: string): Promise<RawReply> {
  const { replies } = await exchange(service.port, bytes, { replyCount: 1 });
  return replies[0] ?? assert.fail("no answer");
}

/** How many deliveries `act` puts on disk. Earlier ones are there before a later push of our own. */
async function recordedBy(act: () => Promise<void>): Promise<number> {
  const before = recordedDeliveryCount(service.statePath);
  await act();
  assert.equal((await deliver(service.url, githubPush())).status, 202);
  return recordedDeliveryCount(service.statePath) - before - 1;
}

test("nothing but its path to the letter is the webhook's, however well it is signed", async () => {
  const targets = ["/", "/%77ebhook", "//webhook", "/webhook/", "/a/../webhook", "/WEBHOOK", "/webhook%00"];
  for (const target of [...targets, "/webhook#x", "http://hotpush.test/webhook", "/health/", "/__proto__"])
    assertProblem(await firstReply(onTheWire(githubPush(), { target })), "not_found");
});

test("every method but its own is refused on a path with 405 and what is allowed", async () => {
  for (const [target, allowed] of [
    ["/webhook", "POST"],
    ["/health", "GET, HEAD"],
  ] as const)
    for (const method of METHODS.filter((name) => !`${allowed}, HEAD, CONNECT`.includes(name))) {
      const reply = await firstReply(onTheWire(githubPush(), { method, target }));
      assertProblem(reply, "method_not_allowed");
      assert.equal(reply.headers.get("allow"), allowed, method);
    }
});

test("/health answers ok and nothing else, with a query as without", async () => {
  for (const target of ["/health", "/health?from=probe"]) {
    const response = await fetch(`${service.url}${target}`);
    assert.equal(response.status, 200);
    assert.deepEqual(await response.json(), { status: "ok" });
    assertHeaders(response, "application/json; charset=utf-8");
  }
});

/** A real push, blown up to `bytes` with white space, which JSON allows. */
function pushOf(bytes: number) {
  const { body } = githubPush();
  return githubDelivery("push", Buffer.concat([Buffer.from(body), Buffer.alloc(bytes - body.length, " ")]));
}

test("a push of WEBHOOK_BODY_LIMIT is accepted, and one byte more refused, also in chunks", async () => {
  assert.equal((await deliver(service.url, pushOf(limitBytes))).status, 202);
  const large = pushOf(limitBytes + 1);
  const reply = await deliver(service.url, large);
  assertProblem({ ...reply, body: reply.json }, "payload_too_large");
  assert.equal(reply.headers.get("connection"), "close");
  assert.match(reply.json.detail ?? "", /1 MiB.*WEBHOOK_BODY_LIMIT/);
  const head = onTheWire({ ...large, body: "" }, { framing: [chunked] });
  assertProblem(await firstReply(head + asChunks(String(large.body))), "payload_too_large");
});

test("a sender that reads only when it has sent everything sees the 413 too", async () => {
  const large = pushOf(25 * limitBytes);
  const socket = connect({ port: service.port, host: "127.0.0.1" });
  socket.pause();
  const head = onTheWire({ ...large, body: "" }, { framing: [`Content-Length: ${large.body.length}`] });
  await new Promise<void>((resolve, reject) => {
    socket.on("error", reject);
    socket.write(head);
    socket.write(large.body, () => resolve());
  });
  const text = (await socket.setEncoding("utf8").toArray()).join("");
  assertProblem(parseReplies(text).replies[0] as never, "payload_too_large");
});

test("a body in pieces of one byte counts with what each piece takes in memory", async () => {
  const head = onTheWire({ ...githubPush(), body: "" }, { framing: [chunked] });
  // 200 kB, but 100 MB of chunks in memory.
  const { replies, isClosed } = await exchange(service.port, head + "1\r\nx\r\n".repeat(200_000));
  assertProblem(replies[0] as never, "overloaded");
  assert(isClosed);
});

test("two signature headers are refused, whichever of them is right", async () => {
  const { headers, body } = githubPush();
  const { "x-hub-signature-256": right = "", ...others } = headers;
  const wrong = `sha256=${"0".repeat(64)}`;
  const sent = await recordedBy(async () => {
    for (const pair of [
      [right, wrong],
      [wrong, right],
      [right, right],
    ]) {
      const extra = pair.map((value) => `X-Hub-Signature-256: ${value}`);
      assertProblem(await firstReply(onTheWire({ headers: others, body }, { extra })), "signature_invalid");
    }
    const inQuery = onTheWire({ headers: others, body }, { target: `/webhook?x-hub-signature-256=${right}` });
    assertProblem(await firstReply(inQuery), "signature_missing");
  });
  assert.equal(sent, 0);
});

/** The lines about the length of the body, which goes out as it is or in chunks. */
const ambiguous: readonly (readonly [string, ...string[]])[] = [
  ["Content-Length: LENGTH", chunked],
  [chunked, "Content-Length: LENGTH"],
  ["Content-Length: LENGTH", "Content-Length: 0"],
  ["Content-Length: +LENGTH"],
  ["Transfer-Encoding: chunked, gzip"],
  ["Transfer-Encoding: xchunked"],
  ["Transfer-Encoding : chunked"],
  ["X-Folded: a", " Transfer-Encoding: chunked", "Content-Length: LENGTH"],
  ["X-Bare: a\nContent-Length: LENGTH"],
  ["X-Nul: a\0b", "Content-Length: LENGTH"],
  ["hOST: other.test", "Content-Length: LENGTH"],
];

test("what two programs may read in two ways is refused, and a push behind it is not read", async () => {
  const recorded = await recordedBy(async () => {
    for (const lines of ambiguous) {
      const push = githubPush();
      const framing = lines.map((line) => line.replace("LENGTH", String(push.body.length)));
      const body = lines[0].startsWith("Transfer") ? asChunks(String(push.body)) : String(push.body);
      const wire = onTheWire({ ...push, body: "" }, { framing }) + body;
      const { replies, isClosed } = await exchange(service.port, wire + onTheWire(githubPush()));
      assert.deepEqual([replies.length, isClosed], [1, true], framing.join());
      assertProblem(replies[0] as never, "malformed_request");
    }
  });
  assert.equal(recorded, 0);
});

test("a connection that sends the next push before its answer gets one answer, and is closed", async () => {
  for (const count of [2, 3, 1_000]) {
    const wires = Array.from({ length: count }, () => onTheWire(githubPush()));
    const recorded = await recordedBy(async () => {
      const { replies, isClosed } = await exchange(service.port, wires.join(""));
      assert.deepEqual([replies.map(({ status }) => status), isClosed], [[202], true]);
    });
    assert.equal(recorded, 1);
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ports = new Set<number | undefined>();
  for (let count = 0; count < 3; count += 1) {
    const sent = request(service.url, { ...githubPush(), agent, method: "POST" }).end(githubPush().body);
    const [response]: IncomingMessage[] = await once(sent, "response");
    ports.add(response?.socket.localPort);
    response?.resume();
    await once(response as IncomingMessage, "end");
  }
  agent.destroy();
  assert.equal(ports.size, 1, "one after the other may use one connection");
});
