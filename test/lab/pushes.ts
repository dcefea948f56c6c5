import { setTimeout as sleep } from "node:timers/promises";
import { deliver, githubPush } from "../harness/delivery.ts";

/** What a sender saw of a push: 0 for a connection that failed. */
export interface PushResult {
  readonly status: number;
  readonly id: number;
  readonly failure: string | null;
}

const pushPauseMs = 50;

/** Sends signed pushes, each a new one, twenty a second, until `stop` is called, which gives what came of each. */
export function startPushes(origin: string): { readonly stop: () => Promise<readonly PushResult[]> } {
  const state = { isStopping: false };
  const sent: Promise<PushResult>[] = [];
  const startedAt = performance.now();
  const sending = (async () => {
    while (!state.isStopping) {
      // A machine that is short of time makes up for the pushes it was too late for.
      while (sent.length * pushPauseMs <= performance.now() - startedAt) sent.push(pushOnce(origin));
      await sleep(pushPauseMs - ((performance.now() - startedAt) % pushPauseMs));
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

async function pushOnce(origin: string): Promise<PushResult> {
  try {
    const { status, json } = await deliver(origin, githubPush());
    return { status, id: json.deployment?.id ?? 0, failure: json.detail ?? null };
  } catch (error) {
    return { status: 0, id: 0, failure: String((error as Error).cause ?? error) };
  }
}
