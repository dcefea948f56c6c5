import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { randomCommit } from "../../test/harness/delivery.ts";
import { openDefault } from "../../test/harness/store.ts";
import { type Scope, temporaryDirectory } from "../../test/harness/temporary.ts";
import { pushesToMain } from "../accept.ts";
import type { Pace } from "../pace.ts";
import { startHotpush } from "../peers/hotpush.ts";
import { count, ms, type Section } from "../report.ts";
import { withScope } from "../scope.ts";
import { send } from "../send.ts";
import { median, percentile } from "../statistics.ts";

/** Nothing ends during the measurement, so nothing of the history is pruned. */
const endlessScript = `#!/bin/sh\nwhile [ -e "$REPO_PATH" ]; do sleep 1; done\n`;

/** How long accepting takes, by the number of deployments stored. */
export async function measureHistory(pace: Pace): Promise<Section> {
  const { sizes, pushes } = pace({
    quick: { sizes: [100, 10_000], pushes: 50 },
    full: { sizes: [100, 1_000, 10_000, 100_000], pushes: 300 },
  });
  const rows: string[][] = [];
  for (const size of sizes) rows.push(await withScope((scope) => measureOne(scope, size, pushes)));
  return {
    title: "Time by the length of the history",
    text: `Accepting ${pushes} pushes to main, one after the other, with this many deployments already in the database. Hotpush keeps 1,000; the larger numbers show the effect of that limit. The start includes a check of the database for damage.`,
    tables: [{ columns: ["Deployments stored", "accepted, p50", "p99", "start"], rows }],
    targets: [],
  };
}

async function measureOne(scope: Scope, size: number, pushes: number): Promise<string[]> {
  const statePath = join(temporaryDirectory(scope), "state");
  fillHistory(statePath, size);
  const { hookUrl, startMs } = await startHotpush(scope, { statePath, script: endlessScript });
  const durationsMs: number[] = [];
  for (const push of pushesToMain(pushes)) {
    const { status, durationMs } = await send(hookUrl, push);
    if (status !== 202) throw new Error(`a push to main was answered with ${status}`);
    durationsMs.push(durationMs);
  }
  return [count(size), ms(median(durationsMs)), ms(percentile(durationsMs, 99)), ms(startMs)];
}

/** A realistic history: each push starts from the last commit of the one before, and each was deployed. */
export function fillHistory(statePath: string, size: number): void {
  const store = openDefault(statePath);
  let before = randomCommit();
  store.transaction(() => {
    for (let index = 0; index < size; index += 1) {
      const after = randomCommit();
      const { id } = store.run(insertDeployment, before, after, index + 1);
      store.run(insertDelivery, randomBytes(32).toString("hex"), id, after);
      before = after;
    }
  });
  store.close();
}

const insertDeployment = `INSERT INTO deployments (project, trigger, ref, before_commit, commit_id, host, state, queue_order, attempts,
  exit_code, created_at_ms, started_at_ms, finished_at_ms)
  VALUES ('default', 'push', 'refs/heads/main', ?, ?, 'github', 'succeeded', ?, 1, 0, 1000, 2000, 3000)`;

const insertDelivery = `INSERT INTO deliveries (project, digest, deployment_id, ref, commit_id, received_at_ms)
  VALUES ('default', ?, ?, 'refs/heads/main', ?, 1000)`;
