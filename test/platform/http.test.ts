import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { createServer as createRawServer } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { sendHttp } from "../../src/platform/http.ts";
import { listenAt, listenHere } from "../harness/listen.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("sends method, headers and body over a Unix socket and reads the answer", async (t) => {
  const socketPath = join(temporaryDirectory(t), "socket");
  await listenAt(t, createServer(echo), socketPath);
  const target = { socketPath, path: "/things?all=1" };
  const answer = await sendHttp(target, { method: "POST", headers: { "x-a": "1" }, body: "ü" });
  assert.deepEqual([answer.status, answer.headers["content-type"]], [201, "text/plain"]);
  assert.equal(answer.body.toString(), "POST /things?all=1 1 2 ü");
});

test("fails with ETIMEDOUT if the answer does not end in time", async (t) => {
  const url = await site(t, (_, response) => response.write("a beginning"));
  await assert.rejects(sendHttp(url, { timeoutMs: 100 }), {
    code: "ETIMEDOUT",
    message: "no answer within 0.1 s",
  });
});

test("fails if the answer switches the protocol, which ends the connection", async (t) => {
  const server = createRawServer((socket) => {
    socket.on("error", () => {});
    socket.end("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
  });
  const url = new URL(`http://127.0.0.1:${await listenHere(t, server)}/`);
  await assert.rejects(sendHttp(url, { timeoutMs: 5_000 }), { code: "ECONNRESET" });
});

test("cuts an endless answer at the limit", async (t) => {
  const url = await site(t, (_, response) => {
    const pour = () => {
      while (response.write("x".repeat(1_000)));
      response.once("drain", pour);
    };
    pour();
  });
  const { body } = await sendHttp(url, {}, 5_000);
  assert.equal(body.length, 5_000);
});

test("an abort ends the request", async (t) => {
  const stopping = new AbortController();
  const url = await site(t, () => stopping.abort());
  await assert.rejects(sendHttp(url, { signal: stopping.signal }), { name: "AbortError" });
});

async function site(t: TestContext, listener: RequestListener): Promise<URL> {
  return new URL(`http://127.0.0.1:${await listenHere(t, createServer(listener))}/`);
}

const echo: RequestListener = async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  response.writeHead(201, { "content-type": "text/plain" });
  const { method, url, headers } = request;
  response.end(`${method} ${url} ${headers["x-a"]} ${headers["content-length"]} ${Buffer.concat(chunks)}`);
};
