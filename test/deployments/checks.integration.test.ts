import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubDelivery, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson } from "../harness/hotpush.ts";
import { startTarget } from "../harness/listen.ts";
import { untilDeployment } from "../harness/records.ts";
import { makeProject } from "../harness/repository.ts";
import { spawnService, startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("a push waits with its reason, and a signed delivery of its check has it deployed", async (t) => {
  const { project, host, service } = await startChecked(t, { CATCH_UP_INTERVAL: "0", DEPLOY_AFTER: "build" });
  const commit = project.commit();
  host.conclude(commit, null);
  await deliver(service.url, githubPush({ after: commit }));
  const { waitReason } = await untilDeployment(service.statePath, 1, ({ waitReason: why }) => why !== null);
  assert.match(waitReason ?? "", /have not ended: build\./);
  const status = await hotpushJson<{ waiting: readonly { waitReason: string }[] }>(service, "status");
  assert.equal(status.waiting[0]?.waitReason, waitReason);
  for (const command of ["status", "history"]) {
    const { stdout } = await hotpush(service, command);
    assert.match(stdout.replaceAll(/\s+/g, " "), /have not ended: build\./, command);
  }

  // The delivery of the push is a hint as well.
  await until("the second look", () => host.looks() === 2);
  host.conclude(commit, "success");
  const event = JSON.stringify({ action: "completed", check_run: { name: "build", head_sha: commit } });
  const forged = await deliver(
    service.url,
    githubDelivery("check_run", event, "another secret of a good length"),
  );
  assert.equal(forged.status, 401);
  const startMs = performance.now();
  await until("a hint would have been taken", () => performance.now() - startMs > 7_000);
  assert.equal(host.looks(), 2, "the forged one has asked nothing");
  const signed = await deliver(service.url, githubDelivery("check_run", event));
  assert.deepEqual([signed.status, signed.json.reason], [200, "other_event"]);
  const done = await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
  assert.equal(done.checkedOutCommit, commit);
  assert.ok(performance.now() - startMs < 25_000, "earlier than the poll, which is every 30 s");
});

test("a check whose delivery is lost is found, also after a restart", async (t) => {
  const { project, host, service } = await startChecked(t);
  const commit = project.commit();
  host.conclude(commit, "failure");
  await deliver(service.url, githubPush({ after: commit }));
  await untilDeployment(
    service.statePath,
    1,
    ({ waitReason }) => waitReason?.includes("not succeeded: build") ?? false,
  );
  await service.end("SIGKILL");
  const second = await service.again();
  await host.untilAsked();
  host.conclude(commit, "success");
  await untilDeployment(second.statePath, 1, ({ state }) => state === "succeeded");
});

test("DEPLOY_AFTER without a token, or with a host that has no checks, is refused at start", async (t) => {
  for (const env of [
    {},
    { COMMIT_STATUS_URL: "https://github.com/octo/app" },
    { COMMIT_STATUS_URL: "gogs+https://git.example.com/octo/app", COMMIT_STATUS_TOKEN_FILE: tokenFile(t) },
    { COMMIT_STATUS_URL: "https://github.com/octo/app", COMMIT_STATUS_TOKEN_FILE: "/nowhere/token" },
    {
      COMMIT_STATUS_URL: "https://github.com/octo/app",
      COMMIT_STATUS_TOKEN_FILE: tokenFile(t),
      DEPLOY_AFTER: "a,,b",
    },
  ]) {
    const directory = temporaryDirectory(t);
    const options = { env: { DEPLOY_AFTER: "checks", ...env }, repoPath: directory, statePath: directory };
    const { child, log } = spawnService(t, options);
    const [exitCode] = (await once(child, "close")) as [number | null];
    assert.equal(exitCode, 78);
    assert.match(log.otherText.join("\n"), /^hotpush: .*DEPLOY_AFTER/m);
  }
});

function tokenFile(t: TestContext): string {
  const path = join(temporaryDirectory(t), "token");
  writeFileSync(path, "a-token-of-a-host\n", { mode: 0o600 });
  return path;
}

/** A service that deploys what GitHub, which has one check, `build`, for each commit, calls green. */
async function startChecked(t: TestContext, env: Readonly<Record<string, string>> = {}) {
  const project = makeProject(t);
  const conclusions = new Map<string, string | null>();
  let looks = 0;
  const server = await startTarget(t, (response, { method, path }) => {
    const [, commit = "", list] = /\/commits\/(\w+)\/([a-z-]+)/.exec(path) ?? [];
    if (method === "POST") return void response.writeHead(201).end("{}");
    if (list === "check-suites") looks += 1;
    const conclusion = conclusions.get(commit);
    const run = { name: "build", status: conclusion === null ? "in_progress" : "completed", conclusion };
    const answer = { check_suites: [], statuses: [], check_runs: conclusion === undefined ? [] : [run] };
    response.writeHead(200).end(JSON.stringify(answer));
  });
  const service = await startService(t, {
    repoPath: project.repoPath,
    env: {
      CATCH_UP_INTERVAL: "1s",
      DEPLOY_AFTER: "checks",
      COMMIT_STATUS_URL: `github+${server.url}/octo/app`,
      COMMIT_STATUS_TOKEN_FILE: tokenFile(t),
      ...env,
    },
  });
  const host = {
    conclude: (commit: string, conclusion: string | null) => void conclusions.set(commit, conclusion),
    looks: () => looks,
    /** Waits until the service has asked once more, from now on. */
    async untilAsked() {
      const before = looks;
      await until("the host is asked", () => looks > before);
    },
  };
  return { project, host, service };
}
