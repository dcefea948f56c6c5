import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  readReplacementRequest,
  removeReplacementRequest,
  writeReplacementRequest,
} from "../../../src/rollout/self-update/replacement-request.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

const first = { old: "a".repeat(64), helper: null };
const second = { old: "b".repeat(64), helper: { name: "shop-helper", project: "shop", args: ["rollout"] } };

test("reads a request as it was written, and the newest one counts", (t) => {
  const directory = temporaryDirectory(t);
  assert.equal(readReplacementRequest(directory), null);
  assert.partialDeepStrictEqual(writeReplacementRequest(directory, first), first);
  const written = writeReplacementRequest(directory, second);
  assert.deepEqual(readReplacementRequest(directory), written);
  assert.partialDeepStrictEqual(written, second);
});

test("a damaged request counts as none, and the next one replaces it", (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, "replacement.json"), '{"old": "a');
  assert.equal(readReplacementRequest(directory), null);
  const written = writeReplacementRequest(directory, first);
  assert.deepEqual(readReplacementRequest(directory), written);
});

test("removes a finished request, but no newer one for the same container", (t) => {
  const directory = temporaryDirectory(t);
  const earlier = writeReplacementRequest(directory, first);
  const again = writeReplacementRequest(directory, first);
  removeReplacementRequest(directory, earlier);
  assert.deepEqual(readReplacementRequest(directory), again);
  const newest = writeReplacementRequest(directory, second);
  removeReplacementRequest(directory, again);
  assert.deepEqual(readReplacementRequest(directory), newest);
  removeReplacementRequest(directory, newest);
  assert.equal(readReplacementRequest(directory), null);
});

test("reads and removes a request of an older version", (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, "replacement.json"), JSON.stringify(first));
  const request = readReplacementRequest(directory);
  assert.deepEqual(request, first);
  if (request) removeReplacementRequest(directory, request);
  assert.equal(readReplacementRequest(directory), null);
});
