import assert from "node:assert/strict";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deliver, githubPush, type WebhookReply } from "../harness/delivery.ts";
import { fillDisk, mountImage, mountTmpfs } from "../harness/mounts.ts";
import { callAsPage, makeSignInLink, startPage } from "../harness/page.ts";
import { digestOf, findLost } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import { type RunningService, startService } from "../harness/service.ts";
import { linesOf, temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const diskBytes = 12 * 1024 ** 2;
const onExt4 = needs("mount", "ext4");

/** Reports its start and waits. Once the disk is full, begins a step and prints a lot. */
const waitingScript = `#!/bin/sh
echo "$2" >>"$REPO_PATH/begun"
until [ -e "$REPO_PATH/go" ]; do sleep 0.02; [ -d "$REPO_PATH" ] || exit; done
echo "==> Step on a full disk"
yes "$(printf '%1000s' long)" | head -n 1500
echo "$2" >>"$REPO_PATH/ended"
`;

test("a full disk refuses pushes, loses none, and recovers when there is space again", onExt4, async (t) => {
  const disk = mountImage(t, join(temporaryDirectory(t), "disk"), diskBytes);
  const service = await startService(t, { statePath: join(disk, "state"), script: waitingScript });
  const begun = join(service.repoPath, "begun");
  const accepted = new Map<string, number>();
  const push = () => pushAndNote(service, accepted);
  const first = await push();
  await service.log.waitFor(({ event }) => event === "deployment.started");
  await until("the script has begun", () => linesOf(begun).length === 1);

  fillDisk(disk);
  const refusal = await pushUntil(push, ({ status }) => status !== 202);
  assert.equal(refusal.status, 503);
  assert.equal(refusal.json.code, "storage_unavailable");
  assert.match(refusal.headers.get("retry-after") ?? "", /^\d+$/);
  await until("/health says so", async () => (await healthStatus(service)) === 503);

  writeFileSync(join(service.repoPath, "go"), "");
  await until("the script has ended", () => linesOf(join(service.repoPath, "ended")).length === 1);
  await service.log.waitFor(({ event }) => event === "store.failed");
  assert.equal((await push()).status, 503);

  rmSync(join(disk, "ballast"));
  await pushUntil(push, ({ status }) => status === 202);
  const ending = await service.log.waitForEnding(first.json.deployment?.id ?? 0);
  assert.equal(ending.event, "deployment.succeeded");
  await until("/health is ok again", async () => (await healthStatus(service)) === 200);
  const last = Math.max(...accepted.values());
  assert.equal((await service.log.waitForEnding(last)).event, "deployment.succeeded");
  assert.equal(new Set(linesOf(begun)).size, linesOf(begun).length, "a script ran twice");
  assert.deepEqual(findLost(service.statePath, accepted), [], "accepted pushes were lost");
  assert.equal(service.child.exitCode, null, "the process is still the one that was started");
});

test(
  "the exit code of a script that ends on a full disk without a service is recorded",
  needs("mount"),
  async (t) => {
    const disk = mountTmpfs(t, diskBytes);
    const script =
      '#!/bin/sh\nuntil [ -e "$REPO_PATH/go" ]; do sleep 0.02; done\necho "$2" >>"$REPO_PATH/begun"\n';
    const service = await startService(t, { statePath: join(disk, "state"), script });
    await deliver(service.url, githubPush());
    const file = (name: string) => existsSync(join(service.statePath, "runs/1", name));
    await until("the script is there", () => file("pid"));
    await service.end("SIGKILL");
    fillDisk(disk);
    writeFileSync(join(service.repoPath, "go"), "");
    await until("the script has ended", () => file("exit"));
    rmSync(join(disk, "ballast"));
    const next = await service.again();
    assert.equal((await next.log.waitForEnding(1)).event, "deployment.succeeded");
    assert.equal(linesOf(join(service.repoPath, "begun")).length, 1);
  },
);

async function pushAndNote({ url }: RunningService, accepted: Map<string, number>): Promise<WebhookReply> {
  const delivery = githubPush();
  const reply = await deliver(url, delivery);
  if (reply.status === 202) accepted.set(digestOf(delivery), reply.json.deployment?.id ?? 0);
  return reply;
}

/** A full disk still accepts data that fits into the existing pages of a file. */
async function pushUntil(push: () => Promise<WebhookReply>, isEnough: (reply: WebhookReply) => boolean) {
  return await until("the answer changes", async () => {
    const reply = await push();
    return isEnough(reply) && reply;
  });
}

async function healthStatus({ url }: RunningService): Promise<number> {
  return (await fetch(`${url}/health`)).status;
}

test("a full disk keeps no visitor from looking, and ends no process", needs("mount"), async (t) => {
  const disk = mountTmpfs(t, diskBytes);
  const service = await startService(t, { statePath: join(disk, "state") });
  const page = await startPage(t, service);
  const link = await makeSignInLink(service);
  fillDisk(disk);
  // The first use of a token, and of a link, is written down.
  assert.equal((await page.ask("GET /api/projects")).status, 200);
  assert.equal(
    (await callAsPage(service, "POST /sessions", { credential: null, body: { link } })).status,
    503,
  );
  assert.equal((await page.ask("POST /api/projects/default/pause")).status, 503);
  rmSync(join(disk, "ballast"));
  assert.equal((await page.ask("POST /api/projects/default/pause")).status, 200);
  assert.equal(service.child.exitCode, null);
});
