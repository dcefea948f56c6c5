import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { deliver, githubPush } from "../harness/delivery.ts";
import { startLoad } from "../harness/load.ts";
import { findLost, readRecorded } from "../harness/records.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const kills = Number(process.env.HOTPUSH_TEST_KILLS ?? 200);
const clients = 16;

/**
 * mkdir is atomic: it fails if another script is running. One script in four outlives its service, and runs on for a
 * while beside the next service, however long that takes to start.
 */
const exclusiveScript = `#!/bin/sh
mkdir "$REPO_PATH/at-work" || echo "$2" >>"$REPO_PATH/overlaps"
life=$(cat "$REPO_PATH/life")
case $2 in
*[0-3])
  while [ "$life" != last ] && [ "$(cat "$REPO_PATH/life")" = "$life" ]; do sleep 0.02; done
  sleep 0.3
  ;;
esac
echo "$2" >>"$REPO_PATH/deployed"
rmdir "$REPO_PATH/at-work"
`;

test(`${kills} kills of a busy service lose no accepted push and let no two scripts overlap`, async (t) => {
  const startedAtMs = performance.now();
  let service = await startService(t, { script: exclusiveScript });
  beginLife(service.repoPath, "first");
  const load = startLoad(clients);
  const { statePath, repoPath } = service;
  let checked = 0;

  function checkNewest(): void {
    const newest = [...load.accepted].slice(checked);
    checked += newest.length;
    assert.deepEqual(findLost(statePath, newest), [], "accepted pushes that are not recorded");
    assert.deepEqual(linesOf(join(repoPath, "overlaps")), [], "scripts that ran beside another one");
  }

  for (let kill = 0; kill < kills; kill += 1) {
    load.aim(service.url);
    // The moment of the kill is random; one life in four is long enough to start more scripts.
    await delay(60 + Math.random() * (kill % 4 === 0 ? 600 : 140));
    await service.end("SIGKILL");
    service = await service.again();
    beginLife(repoPath, `${kill + 1}`);
    checkNewest();
  }
  beginLife(repoPath, "last");
  await load.stop();
  await until("everything queued has been deployed", () => unfinished(statePath) === 0, 60_000);

  assert.deepEqual(findLost(statePath, load.accepted), [], "accepted pushes that are not recorded");
  assert.deepEqual(load.contradictions, [], "deliveries that were answered with two ids");
  assert.deepEqual(linesOf(join(repoPath, "overlaps")), [], "scripts that ran beside another one");
  const deployed = linesOf(join(repoPath, "deployed"));
  assert.deepEqual(deployed.filter(isRepeated), [], "commits whose script ran twice");
  assert.equal(deployed.at(-1), newestCommit(statePath), "the last deployed commit is the last pushed one");
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  t.diagnostic(
    `${kills} kills in ${seconds} s: ${load.sent()} pushes sent, ${load.accepted.size} accepted, 0 lost, ` +
      `${deployed.length} scripts, 0 overlaps`,
  );
});

test("if a service is killed while its script is starting, no second one starts beside it", async (t) => {
  const service = await startService(t, {
    script: exclusiveScript.replace("*[0-3]", "*"),
    env: { PATH: `${slowToLock(t)}:${process.env.PATH}` },
  });
  beginLife(service.repoPath, "first");
  await deliver(service.url, githubPush());
  await until("the script is starting", () => existsSync(join(service.statePath, "runs/1/lock")));
  await service.end("SIGKILL");
  const next = await service.again();
  await next.log.waitFor(({ event }) => seenByRecovery.has(event ?? ""));
  beginLife(service.repoPath, "last");
  await until("the deployment has ended", () => unfinished(service.statePath) === 0);
  await next.end();
  assert.deepEqual(linesOf(join(service.repoPath, "overlaps")), []);
  assert.equal(linesOf(join(service.repoPath, "deployed")).length, 1);
});

const seenByRecovery = new Set(["deployment.adopted", "deployment.interrupted"]);

/** A directory with a `flock` that is slow at the start of a run. */
function slowToLock(t: TestContext): string {
  const directory = temporaryDirectory(t);
  const isAsked = 'tr "\\0" " " <"/proc/$PPID/cmdline" | grep -q supervisor.sh';
  writeScript(join(directory, "flock"), `#!/bin/sh\n${isAsked} && sleep 1\nexec /usr/bin/flock "$@"\n`);
  return directory;
}

/** Signals to the scripts that outlive their service that the next one runs. */
function beginLife(repoPath: string, name: string): void {
  writeFileSync(join(repoPath, "life"), name);
}

function unfinished(statePath: string): number {
  const sql = "SELECT 1 FROM deployments WHERE state IN ('queued', 'running', 'interrupted')";
  return readRecorded(statePath, ({ all }) => all(sql).length);
}

function newestCommit(statePath: string): unknown {
  const sql = "SELECT commit_id FROM deployments ORDER BY id DESC LIMIT 1";
  return readRecorded(statePath, ({ all }) => all(sql)[0]?.commit_id);
}

function isRepeated(line: string, index: number, lines: readonly string[]): boolean {
  return lines.indexOf(line) !== index;
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, "utf8").trim().split("\n");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
