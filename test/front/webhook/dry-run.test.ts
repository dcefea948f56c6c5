import assert from "node:assert/strict";
import { chmodSync, existsSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readDryRun, withoutDryRun } from "../../../src/deployments/push.ts";
import {
  type Delivery,
  deliver,
  githubDelivery,
  githubPush,
  noCommit,
  randomCommit,
} from "../../harness/delivery.ts";
import { hotpush, startAnswering } from "../../harness/hotpush.ts";
import { readRecorded } from "../../harness/records.ts";
import { letGo, type RunningService, startService, waitingScript } from "../../harness/service.ts";

const touching = '#!/bin/sh\ntouch "$REPO_PATH/ran"\n';

/** The same push with the marker at its end, as `hotpush send --dry-run` sends it. */
function dry({ body }: Delivery): Delivery {
  return githubDelivery("push", `${String(body).slice(0, -1)},"hotpush":{"dryRun":true}}`);
}

function countRows({ statePath }: RunningService): number {
  return readRecorded(statePath, ({ all }) =>
    all("SELECT 1 FROM deployments UNION ALL SELECT 1 FROM deliveries"),
  ).length;
}

async function wouldOf(
  service: RunningService,
  delivery: Delivery,
): Promise<Record<string, Record<string, unknown>>> {
  const { status, json } = await deliver(service.url, delivery);
  assert.equal(status, 200, JSON.stringify(json));
  assert.equal(json.status, "dry-run");
  return (json as unknown as { would: Record<string, Record<string, unknown>> }).would;
}

test("a dry run says that the push would be deployed now, records nothing and runs nothing", async (t) => {
  const service = await startService(t, { script: touching });
  const after = randomCommit();
  const would = await wouldOf(service, dry(githubPush({ after })));
  assert.deepEqual(would, { deploy: { ref: "refs/heads/main", commit: after, when: "now" } });
  assert.equal(countRows(service), 0);
  const real = await deliver(service.url, githubPush());
  assert.equal(real.json.deployment?.id, 1, "not even a number was taken");
  await service.log.waitForEnding(1);
  assert.equal((await service.log.waitFor(({ event }) => event === "delivery.dry_run")).would, "deploy");
});

test("the script is not run by a dry run", async (t) => {
  const service = await startService(t, { script: touching });
  await wouldOf(service, dry(githubPush()));
  await service.end();
  assert.equal(existsSync(join(service.repoPath, "ran")), false);
});

test("while the queue is paused, the push would be deployed when it is resumed", async (t) => {
  const service = await startAnswering(t, { script: touching });
  await hotpush(service, "pause");
  assert.equal((await wouldOf(service, dry(githubPush()))).deploy?.when, "resumed");
});

test("while a deployment runs, the push would come after it", async (t) => {
  const service = await startService(t, { script: waitingScript });
  const { json } = await deliver(service.url, githubPush());
  const would = await wouldOf(service, dry(githubPush()));
  assert.equal(would.deploy?.when, "after");
  assert.deepEqual(would.deploy?.after, { ...json.deployment, state: "running" });
  assert.equal(countRows(service), 2, "the running one and its delivery");
  letGo(service.repoPath);
  await service.log.waitForEnding(1);
});

test("a delivery that was deployed is known again in a dry run", async (t) => {
  const service = await startService(t);
  const push = githubPush();
  await deliver(service.url, push);
  await service.log.waitForEnding(1);
  const would = await wouldOf(service, dry(push));
  assert.equal((would.duplicate?.deployment as { id: number } | undefined)?.id, 1);
  assert.match(String(would.duplicate?.detail), /Already deployed\./);
});

test("a dry run of what is not deployed says that it would be ignored, and why", async (t) => {
  const service = await startService(t, { env: { REPOSITORY: "octo/app" } });
  for (const [fields, reason] of [
    [{ ref: "refs/heads/next" }, "other_branch"],
    [{ ref: "refs/tags/v1" }, "tag"],
    [{ deleted: true, after: noCommit }, "branch_deleted"],
    [{ repository: "octo/other" }, "other_repository"],
  ] as const)
    assert.equal((await wouldOf(service, dry(githubPush(fields)))).ignore?.reason, reason);
});

test("a script that cannot be started is reported with its problem", async (t) => {
  const service = await startService(t);
  const script = join(service.repoPath, "deploy.sh");
  chmodSync(script, 0o644);
  assert.equal((await wouldOf(service, dry(githubPush()))).fail?.code, "script_not_executable");
  unlinkSync(script);
  const would = await wouldOf(service, dry(githubPush()));
  assert.equal(would.fail?.code, "script_missing");
  assert.match(String(would.fail?.detail), /deploy\.sh does not exist/);
});

test("a dry run that a stranger signs is refused like any other delivery", async (t) => {
  const service = await startService(t);
  const { body } = dry(githubPush());
  const { status, json } = await deliver(
    service.url,
    githubDelivery("push", body, "another secret of 32 bytes, or so."),
  );
  assert.deepEqual([status, json.code], [401, "signature_invalid"]);
});

test("what is not signed, a header or a query, makes no dry run", async (t) => {
  const service = await startService(t);
  const { headers, body } = githubPush();
  const marked = { ...headers, "x-hotpush-dry-run": "true", hotpush: '{"dryRun":true}' };
  const response = await fetch(`${service.url}/webhook?dryRun=true&hotpush=dryRun`, {
    method: "POST",
    headers: marked,
    body: body as string,
  });
  assert.equal(response.status, 202);
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
});

test("a marker that is not whole is refused: it is neither a dry run nor a push", async (t) => {
  const service = await startService(t);
  for (const hotpush of [
    { dryRun: "true" },
    { dryRun: 1 },
    { dryrun: true },
    true,
    null,
    [],
    { dryRun: true, more: 1 },
  ]) {
    const { status, json } = await deliver(service.url, githubPush({ hotpush }));
    assert.deepEqual([status, json.code, json.pointer], [422, "invalid_payload", "/hotpush"]);
  }
  assert.equal(countRows(service), 0);
});

test("a marker that says no is an ordinary push", async (t) => {
  const service = await startService(t);
  const { status } = await deliver(service.url, githubPush({ hotpush: { dryRun: false } }));
  assert.equal(status, 202);
  await service.log.waitForEnding(1);
});

test("a ping with the marker is a ping", async (t) => {
  const service = await startService(t);
  const body = '{"zen":"Keep it logically awesome.","hotpush":{"dryRun":true}}';
  const { status, json } = await deliver(service.url, githubDelivery("ping", body));
  assert.deepEqual([status, json.status], [200, "pong"]);
});

test("only an own member of the body counts, and the marker is cut out to the byte", () => {
  assert.equal(readDryRun(JSON.parse('{"__proto__":{"hotpush":{"dryRun":true}}}')), "ordinary");
  assert.equal(readDryRun({ commits: [{ hotpush: { dryRun: true } }] }), "ordinary");
  const cut = (text: string) => withoutDryRun(Buffer.from(text)).toString();
  assert.equal(cut('{"ref":"ä","hotpush":{"dryRun":true}}\n'), '{"ref":"ä"}\n');
  assert.equal(cut('{"ref":"a"}'), '{"ref":"a"}');
});
