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
  randomCommit,
  withHeader,
} from "../../harness/delivery.ts";
import { assertHeaders, assertProblem } from "../../harness/problems.ts";
import { exchange, onTheWire } from "../../harness/raw-http.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { readDeployments, recordedDeliveryCount } from "../../harness/records.ts";
import { letGo, startService, waitingScript } from "../../harness/service.ts";

const json = "application/json; charset=utf-8";
const oldSecret = "the secret that was before this one, 2025";
const shared = await startService({ after }, { env: { REPOSITORY: "octo/app" } });

test("a push answers 202 running or queued, and 200 duplicate until it has failed", async (t) => {
  const service = await startService(t, { script: waitingScript });
  const [first, second] = [randomCommit(), randomCommit()];
  const pushes = [githubPush({ after: first }), githubPush({ after: second, before: first })];
  const expected = [
    { id: 1, ref: "refs/heads/main", commit: first, state: "running" },
    { id: 2, ref: "refs/heads/main", commit: second, state: "queued" },
  ];
  for (const status of ["accepted", "duplicate"])
    for (const [index, push] of pushes.entries()) {
      const reply = await deliver(service.url, withHeader(push, "x-github-delivery", status));
      assert.equal(reply.status, status === "accepted" ? 202 : 200);
      assert.deepEqual([reply.json.status, reply.json.deployment], [status, expected[index]]);
      assertHeaders(reply, json);
    }
  letGo(service.repoPath);
  await service.log.waitForEnding(2);
  const late = await deliver(service.url, pushes[1] as Delivery);
  assert.deepEqual([late.status, late.json.deployment?.state], [200, "succeeded"]);
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

/** What the recorded deliveries have not. */
const ignored: readonly [string, Delivery][] = [
  ["other_branch", githubPush({ ref: "refs/heads/main2" })],
  ["other_branch", githubPush({ ref: "refs/heads/Main" })],
  ["other_branch", githubPush({ ref: "refs/heads/main\n" })],
  ["other_branch", githubPush({ ref: "main" })],
  ["other_repository", githubPush({ repository: "evil/octo/app" })],
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
const depth = 1_000_000;
/** What contract-order.test.ts and the recorded deliveries have not. */
const refused: readonly [HttpProblemCode, Delivery, ...string[]][] = [
  ["signature_unsupported", { headers: { ...gitlabEvent, "x-gitlab-token": "some-token" }, body: "{}" }],
  ["invalid_json", githubDelivery("push", "\ufeff{}")],
  ["invalid_payload", githubDelivery("push", `${"[".repeat(depth)}${"]".repeat(depth)}`), "pointer"],
  ["invalid_payload", githubPush({ after: "A".repeat(40) }), "pointer"],
  ["invalid_payload", githubPush({ after: 7 }), "pointer"],
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

test("a flood of deliveries that change nothing costs a bounded number of log lines, and none goes uncounted", async (t) => {
  const { port, faults: lines } = await startReceiver(t, { level: "info", isKnown: true });
  // So the window of the flood ends when the test says so.
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const flood = {
    other_branch: githubPush({ ref: "refs/heads/feature" }),
    pong: githubDelivery("ping", "{}"),
    dry_run: githubPush({ ref: "refs/heads/feature", hotpush: { dryRun: true } }),
    duplicate: githubPush(),
  };
  for (const [reason, delivery] of Object.entries(flood)) {
    lines.length = 0;
    const bytes = onTheWire(delivery);
    await Promise.all(Array.from({ length: 150 }, () => exchange(port, bytes, { replyCount: 1 })));
    assert.equal(lines.length, 100, reason);
    t.mock.timers.tick(1_000);
    const { event, reason: counted, count } = JSON.parse(lines[100] ?? "");
    assert.deepEqual([event, counted, count], ["delivery.ignored_more", reason, 50]);
  }
});
