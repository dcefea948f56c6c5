import assert from "node:assert/strict";
import { test } from "node:test";
import { longestGraceS, trafficOf } from "../../../src/rollout/proxy/traffic.ts";
import { isProblem } from "../../harness/is-problem.ts";
import { sampleService } from "../sample.ts";

const here = { liveDirectory: "/run/live", liveFilesRead: new Set(["app"]) };

test("only a container that was drained has less than its own stop grace period", () => {
  assert.equal(longestGraceS(trafficOf(here, sampleService())), 10);
  const worker = sampleService({ name: "worker" });
  assert.equal(longestGraceS(trafficOf(here, worker)), Number.POSITIVE_INFINITY);
  const watched = sampleService({ replacement: { how: "scale" } });
  assert.equal(longestGraceS(trafficOf(here, watched)), Number.POSITIVE_INFINITY);
});

test("a service whose live file would be that of another one's replica is refused, with another name for it", () => {
  const service = sampleService({ name: "app.2" });
  assert.throws(
    () => trafficOf(here, service),
    isProblem("compose_invalid", /app\.2 ends in .*such as app-2\./),
  );
});
