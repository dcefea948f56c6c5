import type { Log } from "../log.ts";
import type { Engine } from "../platform/docker/engine.ts";
import {
  type ReplacementRequest,
  removeReplacementRequest,
} from "../rollout/own-container/replacement-request.ts";

/** What a hand-over needs of the service. */
export interface HandOverContext {
  readonly statePath: string;
  /** What a deploy script would get of the environment. */
  readonly scriptEnv: Record<string, string>;
  /** Puts stars in place of the secrets in what a helper wrote. */
  readonly redact: (text: string) => string;
  /** Stops the service, nothing of which is running any more. */
  readonly close: () => Promise<void>;
  readonly log: Log;
}

/** The Docker engine that deploy scripts talk to. Its code is read when there is something to hand over. */
export async function engineOf({ scriptEnv }: HandOverContext): Promise<Engine> {
  const { connectEngine } = await import("../platform/docker/engine.ts");
  return connectEngine(scriptEnv.DOCKER_HOST);
}

/** Says why `request` cannot be met, and forgets it. */
export function giveUp(
  { statePath, log }: HandOverContext,
  request: ReplacementRequest,
  reason: string,
): void {
  removeReplacementRequest(statePath, request);
  log.error(
    { event: "service.not_replaced" },
    `${reason}. This container goes on; the next roll-out tries again.`,
  );
}
