import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { githubPush, type ReplyBody } from "../harness/delivery.ts";
import { digestOf, readDeployments, readRecorded } from "../harness/records.ts";
import { until } from "../harness/until.ts";

/** The result of a push for its sender; 0 for a failed connection. */
export interface PushResult {
  readonly status: number;
  /** SHA-256 of its body, in hex: by this it is known in the record. */
  readonly digest: string;
  readonly failure: string | null;
  readonly tookMs: number;
}

const pushPauseMs = 50;
const longestDeploymentsMs = 120_000;

/** Sends new signed pushes, twenty a second, until `stop` is called, which returns their results. */
export function startPushes(origin: string): { readonly stop: () => Promise<readonly PushResult[]> } {
  const state = { isStopping: false };
  const sent: Promise<PushResult>[] = [];
  const startedMs = performance.now();
  const sending = (async () => {
    while (!state.isStopping) {
      // A busy machine catches up on late pushes.
      while (sent.length * pushPauseMs <= performance.now() - startedMs) sent.push(pushOnce(origin));
      await sleep(pushPauseMs - ((performance.now() - startedMs) % pushPauseMs));
    }
  })();
  return {
    async stop() {
      state.isStopping = true;
      await sending;
      return Promise.all(sent);
    },
  };
}

/** Waits until all deployments have ended. No push may have failed; each must be deployed or superseded. */
export async function assertNoneLost(results: readonly PushResult[], statePath: string): Promise<void> {
  const failures = results.filter(({ status }) => status !== 202);
  assert.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${results.length} pushes failed`);
  await until(
    "every deployment has ended",
    () => readDeployments(statePath).every(hasEnded),
    longestDeploymentsMs,
  );
  // Also of those that are pruned from the history.
  const sql = `SELECT digest, coalesce(deployments.state, last_state) AS state
    FROM deliveries LEFT JOIN deployments ON deployments.id = deployment_id`;
  const rows = readRecorded(statePath, ({ all }) => all(sql));
  const states = new Map(rows.map(({ digest, state }) => [digest, String(state)]));
  const ends = results.map(({ digest }) => ({ digest, state: states.get(digest) ?? "none" }));
  const lost = ends.filter(({ state }) => !["succeeded", "superseded"].includes(state));
  assert.deepEqual(lost.slice(0, 3), [], `${lost.length} of ${results.length} pushes were lost`);
}

function hasEnded({ state }: { readonly state: string }): boolean {
  return !["queued", "running", "interrupted"].includes(state);
}

/** Sends a push once, as a git host does. */
async function pushOnce(origin: string): Promise<PushResult> {
  const startMs = performance.now();
  const took = () => Math.round(performance.now() - startMs);
  const { headers, body } = githubPush();
  const digest = digestOf({ headers, body });
  try {
    const response = await fetch(`${origin}/webhook`, { method: "POST", headers, body: body as string });
    const { detail } = (await response.json()) as ReplyBody;
    return { status: response.status, digest, failure: detail ?? null, tookMs: took() };
  } catch (error) {
    return { status: 0, digest, failure: String((error as Error).cause ?? error), tookMs: took() };
  }
}
