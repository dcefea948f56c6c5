import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deliver, githubDelivery, githubPush } from "../harness/delivery.ts";
import { hotpush } from "../harness/hotpush.ts";
import { startTarget } from "../harness/listen.ts";
import { untilDeployment } from "../harness/records.ts";
import { makeProject } from "../harness/repository.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("a push waits with its reason, and a signed delivery of its check has it deployed", async (t) => {
  const project = makeProject(t);
  const looksMs: number[] = [];
  let conclusion: string | null = null;
  const server = await startTarget(t, (response, { method, path }) => {
    if (method === "POST") return void response.writeHead(201).end("{}");
    if (path.includes("/check-suites")) looksMs.push(performance.now());
    const run = { name: "build", status: conclusion === null ? "in_progress" : "completed", conclusion };
    response.writeHead(200).end(JSON.stringify({ check_suites: [], statuses: [], check_runs: [run] }));
  });
  const path = join(temporaryDirectory(t), "token");
  writeFileSync(path, "a-token-of-a-host\n", { mode: 0o600 });
  const status = { COMMIT_STATUS_URL: `github+${server.url}/octo/app`, COMMIT_STATUS_TOKEN_FILE: path };
  const env = { DEPLOY_AFTER: "build", ...status };
  const service = await startService(t, { repoPath: project.repoPath, env });
  const commit = project.commit();
  await deliver(service.url, githubPush({ after: commit }));
  const { waitReason } = await untilDeployment(service.statePath, 1, ({ waitReason: why }) => why !== null);
  assert.match(waitReason ?? "", /have not ended: build\./);
  for (const command of ["status", "history"]) {
    const { stdout } = await hotpush(service, command);
    assert.match(stdout.replaceAll(/\s+/g, " "), /have not ended: build\./, command);
  }

  // The delivery of the push is a hint as well.
  await until("the second look", () => looksMs.length >= 2);
  conclusion = "success";
  const event = JSON.stringify({ action: "completed", check_run: { name: "build", head_sha: commit } });
  const forged = githubDelivery("check_run", event, "another secret of a good length");
  assert.equal((await deliver(service.url, forged)).status, 401);
  const signed = await deliver(service.url, githubDelivery("check_run", event));
  assert.deepEqual([signed.status, signed.json.reason], [200, "other_event"]);
  const done = await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
  assert.equal(done.checkedOutCommit, commit);
});
