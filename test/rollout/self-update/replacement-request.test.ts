import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  readReplacementRequest,
  removeReplacementRequest,
  requestRecreation,
  requestRemoval,
  writeReplacementRequest,
} from "../../../src/rollout/self-update/replacement-request.ts";
import { type Scope, temporaryDirectory } from "../../harness/temporary.ts";
import { sampleContainer, sampleService } from "../sample.ts";

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

const own = { id: "a".repeat(64), service: "hotpush" };
const target = { projectDirectory: "/srv/shop", files: ["/srv/shop/prod.yaml", "more.yaml"] };

test("the helper gets the directory in the container, and the files as given", (t) => {
  assert.deepEqual(helperArguments(t, { ...target, directoryHere: "/app" }), [
    ...["rollout", "--no-build", "--directory", "/app"],
    ...["--file", "/srv/shop/prod.yaml", "--file", "more.yaml"],
    ...["--commit", "3f2c1a9", "hotpush"],
  ]);
});

test("outside of a container the helper gets the only path there is", (t) => {
  const args = helperArguments(t, target);
  assert.deepEqual(args?.slice(2, 4), ["--directory", "/srv/shop"]);
});

test("a request for removal names the lock that the roll-out holds", (t) => {
  const statePath = temporaryDirectory(t);
  requestRemoval({ own, statePath, lockPath: "/state/rollout/shop.lock" });
  const expected = { old: own.id, helper: null, lockPath: "/state/rollout/shop.lock" };
  assert.partialDeepStrictEqual(readReplacementRequest(statePath), expected);
});

function helperArguments(t: Scope, target: Parameters<typeof requestRecreation>[0]["target"]) {
  const statePath = temporaryDirectory(t);
  const service = sampleService({ name: "hotpush" });
  const rollout = { own, statePath, project: { name: "shop" }, target, report: () => {}, commit: "3f2c1a9" };
  requestRecreation({ ...rollout, service }, [sampleContainer()], "it publishes a port");
  return readReplacementRequest(statePath)?.helper?.args;
}
