import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as createRawServer } from "node:net";
import { test } from "node:test";
import { sendHttp } from "../../src/platform/http.ts";
import { listenHere } from "../harness/listen.ts";

test("an answer that switches the protocol is an end, and is not waited for", async (t) => {
  const server = createRawServer((socket) => {
    socket.on("error", () => {});
    socket.end("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
  });
  const url = new URL(`http://127.0.0.1:${await listenHere(t, server)}/`);
  await assert.rejects(sendHttp(url, { timeoutMs: 60_000 }), { code: "ECONNRESET" });
});

test("cuts an endless answer at the limit", async (t) => {
  const server = createServer((_, response) => {
    const pour = () => {
      while (response.write("x".repeat(1_000)));
      response.once("drain", pour);
    };
    pour();
  });
  const url = new URL(`http://127.0.0.1:${await listenHere(t, server)}/`);
  const { body } = await sendHttp(url, {}, 5_000);
  assert.equal(body.length, 5_000);
});
