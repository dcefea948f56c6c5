import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, test } from "node:test";
import { deliver, githubDelivery, githubPush } from "../../harness/delivery.ts";
import { assertProblem } from "../../harness/problems.ts";
import { asChunks, exchange, onTheWire, parseReplies } from "../../harness/raw-http.ts";
import { recordedDeliveryCount } from "../../harness/records.ts";
import { startService } from "../../harness/service.ts";

const limitBytes = 25 * 1024 ** 2;
const service = await startService({ after });

/** A real push, blown up to `bytes` with white space, which JSON allows. */
function pushOf(bytes: number) {
  const { body } = githubPush();
  return githubDelivery("push", Buffer.concat([Buffer.from(body), Buffer.alloc(bytes - body.length, " ")]));
}

const tooLargePush = pushOf(limitBytes + 1);

test("a signed push of exactly 25 MiB is accepted", async () => {
  assert.equal((await deliver(service.url, pushOf(limitBytes))).status, 202);
});

test("a push of 25 MiB and one byte is refused with 413, and the sender sees it", async () => {
  const before = recordedDeliveryCount(service.statePath);
  const reply = await deliver(service.url, tooLargePush);
  assertProblem({ ...reply, body: reply.json }, "payload_too_large");
  assert.equal(reply.headers.get("connection"), "close");
  assert.match(reply.json.detail ?? "", /25 MiB.*WEBHOOK_BODY_LIMIT/);
  assert.equal(recordedDeliveryCount(service.statePath), before);
});

test("a sender that reads only when it has sent everything sees the 413 too", async () => {
  const socket = connect({ port: service.port, host: "127.0.0.1" });
  socket.pause();
  const head = onTheWire({ ...tooLargePush, body: "" }, { framing: [`Content-Length: ${limitBytes + 1}`] });
  await new Promise<void>((resolve, reject) => {
    socket.on("error", reject);
    socket.write(head);
    socket.write(tooLargePush.body, () => resolve());
  });
  const text = await new Promise<string>((resolve, reject) => {
    let received = "";
    socket.on("error", reject);
    socket.on("data", (chunk) => {
      received += chunk;
    });
    socket.on("close", () => resolve(received));
    socket.resume();
  });
  assertProblem(parseReplies(text).replies[0] as never, "payload_too_large");
});

test("a body in chunks is counted as it arrives, and refused when it exceeds the limit", async () => {
  const { headers, body } = tooLargePush;
  const head = onTheWire({ headers, body: "" }, { framing: ["Transfer-Encoding: chunked"] });
  const { replies } = await exchange(service.port, head + asChunks(String(body)), { replyCount: 1 });
  assertProblem(replies[0] as never, "payload_too_large");
});

test("WEBHOOK_BODY_LIMIT is the limit", async (t) => {
  const small = await startService(t, { env: { WEBHOOK_BODY_LIMIT: "1 KiB" } });
  assert.equal((await deliver(small.url, pushOf(1024))).status, 202);
  const reply = await deliver(small.url, pushOf(1025));
  assert.equal(reply.status, 413);
  assert.match(reply.json.detail ?? "", /1 KiB/);
});

test("a sender that goes away in the middle of its body leaves nothing behind", async () => {
  const before = recordedDeliveryCount(service.statePath);
  const { headers, body } = githubPush();
  const wire = onTheWire({ headers, body });
  const cuts = [1, 40, wire.length - body.length, wire.length - 1];
  for (const cut of cuts.flatMap((length) => Array<number>(25).fill(length))) {
    await new Promise<void>((resolve) => {
      const socket = connect({ port: service.port, host: "127.0.0.1" }, () => {
        socket.write(wire.slice(0, cut), () => socket.resetAndDestroy());
      });
      socket.on("error", () => {});
      socket.on("close", () => resolve());
    });
  }
  assert.equal((await fetch(`${service.url}/health`)).status, 200);
  assert.equal(recordedDeliveryCount(service.statePath), before);
});

test("a body in pieces of one byte counts with what each piece takes in memory", async () => {
  const { headers } = githubPush();
  const head = onTheWire({ headers, body: "" }, { framing: ["Transfer-Encoding: chunked"] });
  // 200 kB, but 100 MB of chunks in memory.
  const { replies, isClosed } = await exchange(service.port, head + "1\r\nx\r\n".repeat(200_000));
  assertProblem(replies[0] as never, "overloaded");
  assert(isClosed);
});
