import assert from "node:assert/strict";
import { test } from "node:test";
import { readReplacementRequest } from "../../../src/rollout/self-update/replacement-request.ts";
import { requestRecreation, requestRemoval } from "../../../src/rollout/self-update/request-replacement.ts";
import { type Scope, temporaryDirectory } from "../../harness/temporary.ts";
import { sampleContainer, sampleService } from "../sample.ts";

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
  const rollout = { own, statePath, project: { name: "shop" }, target, report: () => {} };
  const service = sampleService({ name: "hotpush" });
  requestRecreation(rollout, service, [sampleContainer()], {
    reason: "it publishes a port",
    commit: "3f2c1a9",
  });
  return readReplacementRequest(statePath)?.helper?.args;
}
