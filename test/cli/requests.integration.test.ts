import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryJson, StatusJson } from "../../src/calls/shapes.ts";
import type { SiteRequests } from "../../src/site-requests.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpushJson, startAnswering } from "../harness/hotpush.ts";

const site: SiteRequests = {
  host: "shop.example.org",
  requests: 12_431,
  failed: 0,
  brokeOff: 0,
  left: 0,
  before: { answers: 10_000, serverErrors: 2 },
  after: { answers: 2_431, serverErrors: 1 },
};

/** What a roll-out leaves for the service. */
const script = `#!/bin/sh
mkdir -p "$STATE_PATH/rollout"
echo '${JSON.stringify({ liveAtMs: 1_790_000_000_000, requests: [site] })}' >"$STATE_PATH/rollout/deployment-$DEPLOY_ID.json"
`;

test("the requests of a roll-out are in the record of its deployment", async (t) => {
  const service = await startAnswering(t, { script });
  await deliver(service.url, githubPush());
  await service.log.waitForEnding(1);
  const { deployments } = await hotpushJson<HistoryJson>(service, "history");
  assert.deepEqual(deployments[0]?.requests, [site]);
  assert.equal(deployments[0]?.liveAt, "2026-09-21T14:13:20.000Z");
  const { last } = await hotpushJson<StatusJson>(service, "status");
  assert.deepEqual(last[0]?.requests, [site]);
});
