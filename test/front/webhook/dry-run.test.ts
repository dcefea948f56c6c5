import assert from "node:assert/strict";
import { chmodSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readDryRun, withoutDryRun } from "../../../src/deployments/push.ts";
import { type Delivery, deliver, githubDelivery, githubPush, randomCommit } from "../../harness/delivery.ts";
import { readRecorded } from "../../harness/records.ts";
import { letGo, type RunningService, startService, waitingScript } from "../../harness/service.ts";

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

test("a dry run says what the push would do now, records nothing and runs nothing", async (t) => {
  const service = await startService(t, { script: waitingScript });
  const after = randomCommit();
  const would = await wouldOf(service, dry(githubPush({ after })));
  assert.deepEqual(would, { deploy: { ref: "refs/heads/main", commit: after, when: "now" } });
  assert.equal((await service.log.waitFor(({ event }) => event === "delivery.dry_run")).would, "deploy");
  assert.equal(countRows(service), 0);
  const { json } = await deliver(service.url, githubPush());
  assert.equal(json.deployment?.id, 1, "not even a number was taken");
  const next = await wouldOf(service, dry(githubPush()));
  assert.equal(next.deploy?.when, "after");
  assert.deepEqual(next.deploy?.after, { ...json.deployment, state: "running" });
  assert.equal(countRows(service), 2, "the running one and its delivery");
  letGo(service.repoPath);
  await service.log.waitForEnding(1);
});

test("a dry run says that a push would be ignored, or fail, and why", async (t) => {
  const service = await startService(t, { env: { REPOSITORY: "octo/app" } });
  for (const [fields, reason] of [
    [{ ref: "refs/heads/next" }, "other_branch"],
    [{ repository: "octo/other" }, "other_repository"],
  ] as const)
    assert.equal((await wouldOf(service, dry(githubPush(fields)))).ignore?.reason, reason);
  const script = join(service.repoPath, "deploy.sh");
  chmodSync(script, 0o644);
  assert.equal((await wouldOf(service, dry(githubPush()))).fail?.code, "script_not_executable");
  unlinkSync(script);
  assert.equal((await wouldOf(service, dry(githubPush()))).fail?.code, "script_missing");
  // What is not whole is neither a dry run nor a push.
  for (const hotpush of [{ dryRun: "true" }, { dryrun: true }, null, { dryRun: true, more: 1 }]) {
    const { status, json } = await deliver(service.url, githubPush({ hotpush }));
    assert.deepEqual([status, json.code, json.pointer], [422, "invalid_payload", "/hotpush"]);
  }
  assert.equal(countRows(service), 0);
});

test("only an own member of the body counts, and the marker is cut out to the byte", () => {
  assert.equal(readDryRun(JSON.parse('{"__proto__":{"hotpush":{"dryRun":true}}}')), "ordinary");
  assert.equal(readDryRun({ commits: [{ hotpush: { dryRun: true } }] }), "ordinary");
  const cut = (text: string) => withoutDryRun(Buffer.from(text)).toString();
  assert.equal(cut('{"ref":"ä","hotpush":{"dryRun":true}}\n'), '{"ref":"ä"}\n');
  assert.equal(cut('{"ref":"a"}'), '{"ref":"a"}');
});
