import assert from "node:assert/strict";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, startAnswering } from "../harness/hotpush.ts";

const hanging = '#!/bin/sh\necho "==> Fetch"\necho waiting\nexec sleep 600\n';

test("logs of an ended deployment prints its output, and on stderr how it ended", async (t) => {
  const service = await startAnswering(t, { script: hanging, env: { DEPLOY_TIMEOUT: "1s" } });
  await deliver(service.url, githubPush());
  await service.log.waitForEnding(1);
  const { code, stdout, stderr } = await hotpush(service, "logs", "1");
  assert.deepEqual([code, stdout], [0, "==> Fetch\nwaiting\n"]);
  const lines = stderr.split("\n");
  assert.match(lines[0] ?? "", /^Deployment 1 timed out after .+\.$/);
  assert.match(stderr, /^Its last lines:\n {2}==> Fetch\n {2}waiting\n/m);
  assert.match(stderr, /^ {2}\d+ sleeping, .+: sleep 600$/m);
  for (const line of lines) assert.ok(line.length <= 80 || !line.trim().includes(" "), line);
});

test("logs of a successful deployment reports the success on stderr", async (t) => {
  const service = await startAnswering(t);
  await deliver(service.url, githubPush());
  await service.log.waitForEnding(1);
  const { stderr } = await hotpush(service, "logs");
  assert.match(stderr, /^Deployment 1 succeeded after .+: main is at [0-9a-f]{7}\.\n$/);
});
