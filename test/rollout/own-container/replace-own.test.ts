import assert from "node:assert/strict";
import { test } from "node:test";
import { leaveLater, recreateLater } from "../../../src/rollout/own-container/replace-own.ts";
import { readReplacementRequest } from "../../../src/rollout/own-container/replacement-request.ts";
import { type Scope, temporaryDirectory } from "../../harness/temporary.ts";
import { sampleContainer, sampleService } from "../sample.ts";

const own = { id: "a".repeat(64), service: "hotpush" };
const target = { projectDirectory: "/srv/shop", files: ["/srv/shop/prod.yaml", "more.yaml"] };

test("the helper is told the directory as it is in the container, and the files as compose was given them", (t) => {
  assert.deepEqual(helperArguments(t, { ...target, directoryHere: "/app" }), [
    ...["rollout", "--no-build", "--directory", "/app"],
    ...["--file", "/srv/shop/prod.yaml", "--file", "more.yaml"],
    ...["--commit", "3f2c1a9", "hotpush"],
  ]);
});

test("outside of a container there is one path, and the helper is told that", (t) => {
  const args = helperArguments(t, target);
  assert.deepEqual(args?.slice(2, 4), ["--directory", "/srv/shop"]);
});

test("who is asked to leave is told which lock the roll-out holds", (t) => {
  const statePath = temporaryDirectory(t);
  leaveLater({ own, statePath, lockPath: "/state/rollout/shop.lock" });
  const expected = { old: own.id, helper: null, lockPath: "/state/rollout/shop.lock" };
  assert.partialDeepStrictEqual(readReplacementRequest(statePath), expected);
});

function helperArguments(t: Scope, target: Parameters<typeof recreateLater>[0]["target"]) {
  const statePath = temporaryDirectory(t);
  const rollout = { own, statePath, project: { name: "shop" }, target, report: () => {} };
  const service = sampleService({ name: "hotpush" });
  recreateLater(rollout, service, [sampleContainer()], { reason: "it publishes a port", commit: "3f2c1a9" });
  return readReplacementRequest(statePath)?.helper?.args;
}
