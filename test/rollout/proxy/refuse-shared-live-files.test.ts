import assert from "node:assert/strict";
import { test } from "node:test";
import { refuseSharedLiveFile } from "../../../src/rollout/proxy/refuse-shared-live-files.ts";
import { isProblem } from "../../harness/is-problem.ts";
import { sampleService } from "../sample.ts";

const api = sampleService({ name: "api" });

test("refuses a service whose live file would be another one's replica's", () => {
  const told = /api\.2 would be that of a replica of api\. .* such as api-2\./;
  const refuse = () => refuseSharedLiveFile([api, sampleService({ name: "api.2" })]);
  assert.throws(refuse, isProblem("compose_invalid", told));
});

test("a name that ends in a number is fine alone, or without a live file", () => {
  refuseSharedLiveFile([sampleService({ name: "web.2024" }), api]);
  const replacement = { how: "recreate", reason: "database" } as const;
  refuseSharedLiveFile([api, sampleService({ name: "api.2", replacement })]);
});
