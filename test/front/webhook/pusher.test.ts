import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeploymentJson } from "../../../src/calls/shapes.ts";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { hotpushJson } from "../../harness/hotpush.ts";
import { startService } from "../../harness/service.ts";

const script = '#!/bin/sh\nenv\necho "arguments: $*"\n';

test("who pushed is kept, printable and short, and no script ever sees it", async (t) => {
  const service = await startService(t, { script });
  const names = ["marlene", `ottokar\u001b]0;owned\u0007\u202e${"x".repeat(500)}`, " \n ", 7, undefined];
  for (const [index, name] of names.entries()) {
    await deliver(service.url, githubPush({ pusher: { name } }));
    await service.log.waitForEnding(index + 1);
  }
  const { deployments } = await hotpushJson<{ deployments: DeploymentJson[] }>(service, "history");
  const [plain, hostile, ...none] = deployments.toReversed().map(({ pusher }) => pusher);
  assert.deepEqual(plain, { name: "marlene" });
  assert.match(hostile?.name ?? "", /^ottokar x{80,}…$/);
  assert.equal(hostile?.name.length, 100);
  assert.deepEqual(none, [null, null, null]);
  for (const id of [1, 2]) assert.doesNotMatch(service.log.outputOf(id).join("\n"), /marlene|ottokar/);
});
