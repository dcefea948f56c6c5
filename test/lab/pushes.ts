import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { recordedDeployments, recordedStates } from "../harness/database.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { until } from "../harness/until.ts";

/** The result of a push for its sender; 0 for a failed connection. */
export interface PushResult {
  readonly status: number;
  readonly id: number;
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
    () => recordedDeployments(statePath).every(hasEnded),
    longestDeploymentsMs,
  );
  const states = recordedStates(statePath);
  const ends = results.map(({ id }) => ({ id, state: states.get(id) ?? "none" }));
  const lost = ends.filter(({ state }) => !["succeeded", "superseded"].includes(state));
  assert.deepEqual(lost.slice(0, 3), [], `${lost.length} of ${results.length} pushes were lost`);
}

function hasEnded({ state }: { readonly state: string }): boolean {
  return !["queued", "running", "interrupted"].includes(state);
}

async function pushOnce(origin: string): Promise<PushResult> {
  const startMs = performance.now();
  const took = () => Math.round(performance.now() - startMs);
  try {
    const { status, json } = await deliver(origin, githubPush());
    return { status, id: json.deployment?.id ?? 0, failure: json.detail ?? null, tookMs: took() };
  } catch (error) {
    return { status: 0, id: 0, failure: String((error as Error).cause ?? error), tookMs: took() };
  }
}
