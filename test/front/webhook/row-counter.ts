import assert from "node:assert/strict";
import { afterEach } from "node:test";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { recordedDeliveryCount } from "../../harness/records.ts";
import type { RunningService } from "../../harness/service.ts";

/**
 * For the top of a test file whose tests share a service, which has to be alive after each of them.
 *
 * @returns what asserts, at the end of a test, how many deliveries that test has put on disk
 */
export function countRows({
  url,
  statePath,
}: Pick<RunningService, "url" | "statePath">): (expected: number) => Promise<void> {
  let rowsBefore = 0;
  afterEach(async () => {
    assert.equal((await fetch(`${url}/health`)).status, 200, "the service is alive");
    rowsBefore = recordedDeliveryCount(statePath);
  });
  return async (expected) => {
    // Earlier deliveries are on disk before a later push, so a push of our own marks the moment to count.
    assert.equal((await deliver(url, githubPush())).status, 202);
    assert.equal(recordedDeliveryCount(statePath) - rowsBefore - 1, expected);
  };
}
