import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  readReplacementRequest,
  removeReplacementRequest,
  writeReplacementRequest,
} from "../../../src/rollout/own-container/replacement-request.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

const first = { old: "a".repeat(64), helper: null };
const second = { old: "b".repeat(64), helper: { name: "shop-helper", project: "shop", args: ["rollout"] } };

test("a request is read as it was written, and the newest one counts", (t) => {
  const directory = temporaryDirectory(t);
  assert.equal(readReplacementRequest(directory), null);
  assert.partialDeepStrictEqual(writeReplacementRequest(directory, first), first);
  const written = writeReplacementRequest(directory, second);
  assert.deepEqual(readReplacementRequest(directory), written);
  assert.partialDeepStrictEqual(written, second);
});

test("a damaged request asks for nothing, and the next one takes its place", (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, "replacement.json"), '{"old": "a');
  assert.equal(readReplacementRequest(directory), null);
  const written = writeReplacementRequest(directory, first);
  assert.deepEqual(readReplacementRequest(directory), written);
});

test("a request that is done with is removed, but not a newer one in its place, be it for the same container", (t) => {
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

test("a request that an older Hotpush made is read and removed", (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, "replacement.json"), JSON.stringify(first));
  const request = readReplacementRequest(directory);
  assert.deepEqual(request, first);
  if (request) removeReplacementRequest(directory, request);
  assert.equal(readReplacementRequest(directory), null);
});
