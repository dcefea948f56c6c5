import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import type { HttpProblemCode } from "../../../src/problems.ts";
import {
  type Delivery,
  deliver,
  githubDelivery,
  githubPush,
  noCommit,
  randomCommit,
  withHeader,
} from "../../harness/delivery.ts";
import { assertHeaders, assertProblem } from "../../harness/problems.ts";
import { readDeployments, recordedDeliveryCount } from "../../harness/records.ts";
import { letGo, startService, waitingScript } from "../../harness/service.ts";

const json = "application/json; charset=utf-8";
const oldSecret = "the secret that was before this one, 2025";
const shared = await startService({ after }, { env: { REPOSITORY: "octo/app" } });

test("a push to main answers 202 running, and one that comes meanwhile 202 queued", async (t) => {
  const service = await startService(t, { script: waitingScript });
  const first = randomCommit();
  const second = randomCommit();
  const running = await deliver(service.url, githubPush({ after: first }));
  const queued = await deliver(service.url, githubPush({ after: second, before: first }));
  const ref = "refs/heads/main";
  assert.equal(running.status, 202);
  assert.equal(queued.status, 202);
  assert.deepEqual(running.json, {
    status: "accepted",
    deployment: { id: 1, ref, commit: first, state: "running" },
  });
  assert.deepEqual(queued.json, {
    status: "accepted",
    deployment: { id: 2, ref, commit: second, state: "queued" },
  });
  assertHeaders(running, json);
  letGo(service.repoPath);
  await service.log.waitForEnding(2);
});

test("the same delivery again answers 200 duplicate while it is running, queued and succeeded", async (t) => {
  const service = await startService(t, { script: waitingScript });
  const first = randomCommit();
  const second = randomCommit();
  const pushes = [githubPush({ after: first }), githubPush({ after: second, before: first })];
  for (const push of pushes) assert.equal((await deliver(service.url, push)).status, 202);
  for (const [index, state] of ["running", "queued"].entries()) {
    const again = await deliver(
      service.url,
      withHeader(pushes[index] as Delivery, "x-github-delivery", `other-${index}`),
    );
    assert.equal(again.status, 200);
    assert.equal(again.json.status, "duplicate");
    assert.equal(again.json.deployment?.state, state);
    assert.equal(again.json.deployment?.id, index + 1);
    assertHeaders(again, json);
  }
  letGo(service.repoPath);
  await service.log.waitForEnding(2);
  const late = await deliver(service.url, pushes[1] as Delivery);
  assert.equal(late.status, 200);
  assert.equal(late.json.deployment?.state, "succeeded");
  assert.match(late.json.detail ?? "", /hotpush deploy/);
  assert.equal(readDeployments(service.statePath).length, 2);
});

test("redelivering a push whose deployment failed answers 202 and runs it again", async (t) => {
  const service = await startService(t, { script: waitingScript });
  const push = githubPush();
  letGo(service.repoPath, 3);
  await deliver(service.url, push);
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.failed");
  rmSync(join(service.repoPath, "go"));
  const again = await deliver(service.url, push);
  assert.equal(again.status, 202);
  assert.equal(again.json.status, "accepted");
  assert.equal(again.json.deployment?.id, 1);
  letGo(service.repoPath);
  await service.log.waitFor(({ event }) => event === "deployment.succeeded");
  assert.equal(readDeployments(service.statePath).length, 1);
  assert.equal((await deliver(service.url, push)).json.status, "duplicate");
});

const ignored: readonly [string, Delivery][] = [
  ["other_branch", githubPush({ ref: "refs/heads/develop" })],
  ["other_branch", githubPush({ ref: "refs/heads/main2" })],
  ["other_branch", githubPush({ ref: "refs/heads/Main" })],
  ["other_branch", githubPush({ ref: "refs/heads/main\n" })],
  ["other_branch", githubPush({ ref: "refs/remotes/origin/main" })],
  ["other_branch", githubPush({ ref: "main" })],
  ["tag", githubPush({ ref: "refs/tags/main" })],
  ["branch_deleted", githubPush({ deleted: true, after: noCommit })],
  ["branch_deleted", githubPush({ after: "0".repeat(64) })],
  ["other_repository", githubPush({ repository: "octo/other" })],
  ["other_repository", githubPush({ repository: "evil/octo/app" })],
  ["other_event", githubDelivery("pull_request", '{"action":"opened"}')],
  ["other_event", githubDelivery("", "{}")],
];

test("what is not to be deployed answers 200 ignored, with the reason", async () => {
  const before = recordedDeliveryCount(shared.statePath);
  for (const [reason, delivery] of ignored) {
    const reply = await deliver(shared.url, delivery);
    assert.deepEqual([reply.status, reply.json.status, reply.json.reason], [200, "ignored", reason]);
    assertHeaders(reply, json);
  }
  assert.equal(recordedDeliveryCount(shared.statePath), before);
});

const gitlabEvent = { "content-type": "application/json", "x-gitlab-event": "Push Hook" };
const form = "application/x-www-form-urlencoded";
/** What contract-order.test.ts has not. */
const refused: readonly [HttpProblemCode, Delivery, ...string[]][] = [
  ["signature_unsupported", { headers: { ...gitlabEvent, "x-gitlab-token": "some-token" }, body: "{}" }],
  ["invalid_json", githubDelivery("push", "")],
  ["invalid_json", githubDelivery("push", "\ufeff{}")],
  ["invalid_payload", githubDelivery("push", "[]"), "pointer"],
  ["invalid_payload", githubDelivery("push", "null"), "pointer"],
  ["invalid_payload", githubDelivery("push", "{}"), "pointer"],
  ["invalid_payload", githubPush({ after: "A".repeat(40) }), "pointer"],
  ["unsupported_media_type", withHeader(githubPush(), "content-type", form)],
  ["unsupported_media_type", withHeader(githubPush(), "content-type", ";")],
];

test("what is no push, or cannot be verified, is refused with its problem, and not recorded", async () => {
  const before = recordedDeliveryCount(shared.statePath);
  for (const [code, delivery, ...members] of refused) {
    const reply = await deliver(shared.url, delivery);
    assertProblem({ ...reply, body: reply.json }, code, members);
  }
  assert.equal(recordedDeliveryCount(shared.statePath), before);
});

test("a push signed with the previous secret is accepted while that is configured, and logged", async (t) => {
  const service = await startService(t, { env: { WEBHOOK_SECRET_PREVIOUS: oldSecret } });
  assert.equal((await deliver(service.url, githubPush())).status, 202);
  assert.equal((await deliver(service.url, githubPush({}, oldSecret))).status, 202);
  await service.log.waitFor(({ event }) => event === "secret.previous_used");
  assert.equal((await deliver(service.url, githubPush({}, `${oldSecret}x`))).status, 401);
  assert.equal((await deliver(shared.url, githubPush({}, oldSecret))).status, 401);
});

test("a flood of ignored pushes and pings costs a bounded number of log lines, and none goes uncounted", async (t) => {
  const service = await startService(t);
  const flood = [githubPush({ ref: "refs/heads/feature" }), githubDelivery("ping", "{}")];
  const rounds = 500;
  const startedMs = performance.now();
  for (let count = 0; count < rounds; count += 25) {
    await Promise.all(flood.flatMap((one) => Array.from({ length: 25 }, () => deliver(service.url, one))));
  }
  for (const [event, reason] of [
    ["delivery.ignored", "other_branch"],
    ["delivery.pong", "pong"],
  ]) {
    const logged = () => service.log.lines.filter((line) => line.event === event).length;
    const counted = () =>
      service.log.lines
        .filter((line) => line.event === "delivery.ignored_more" && line.reason === reason)
        .reduce((sum, { count }) => sum + Number(count), 0);
    await service.log.waitFor(() => logged() + counted() === rounds);
    const windows = Math.ceil((performance.now() - startedMs) / 1_000);
    assert.ok(logged() <= 100 * windows, `${logged()} ${event} in ${windows} s`);
  }
});
