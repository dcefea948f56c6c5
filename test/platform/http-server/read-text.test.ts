import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { readText } from "../../../src/platform/http-server.ts";

test("a body in pieces of one byte is copied, so that no piece stays in memory", async () => {
  const text = "piece by piece ".repeat(100);
  assert.equal(await readText(inPiecesOf(text), text.length), text);
  assert.equal(await readText(inPiecesOf(text), text.length - 1), null);
});

/** Every piece has the same memory: who keeps one instead of a copy reads the last byte again and again. */
function inPiecesOf(text: string): IncomingMessage {
  const piece = Buffer.alloc(1);
  async function* iterator() {
    for (const byte of Buffer.from(text)) {
      piece[0] = byte;
      yield piece;
    }
  }
  return { iterator } as unknown as IncomingMessage;
}
