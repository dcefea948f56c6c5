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
  writeReplacementRequest(directory, first);
  writeReplacementRequest(directory, second);
  assert.deepEqual(readReplacementRequest(directory), second);
});

test("a damaged request asks for nothing, and the next one takes its place", (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, "replacement.json"), '{"old": "a');
  assert.equal(readReplacementRequest(directory), null);
  writeReplacementRequest(directory, first);
  assert.deepEqual(readReplacementRequest(directory), first);
});

test("a request that is done with is removed, but not a newer one in its place", (t) => {
  const directory = temporaryDirectory(t);
  writeReplacementRequest(directory, second);
  removeReplacementRequest(directory, first);
  assert.deepEqual(readReplacementRequest(directory), second);
  removeReplacementRequest(directory, second);
  assert.equal(readReplacementRequest(directory), null);
});
