import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { readBody } from "../../../src/front/webhook/body.ts";

test("a body in pieces of one byte counts with what each piece takes in memory", async () => {
  const arriving = { heldBytes: 0, drops: new Set<() => void>() };
  const request = new PassThrough();
  const read = readBody(request as unknown as IncomingMessage, 1_000_000, arriving, () => {});
  for (let count = 0; count < 1_000; count += 1) {
    request.write("x");
    await new Promise(setImmediate);
  }
  assert.ok(arriving.heldBytes > 200_000, String(arriving.heldBytes));
  request.end();
  assert.equal(((await read) as Buffer[]).length, 1_000);
  assert.equal(arriving.heldBytes, 0);
});
