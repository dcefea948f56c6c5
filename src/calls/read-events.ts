import { setTimeout as sleep } from "node:timers/promises";
import { isFinished } from "#deployments/deployment";
import type { Whose } from "./call.ts";
import { openCall, parseLines, type ServicePlace } from "./client.ts";
import type { ControlEvent, DeploymentJson } from "./shapes.ts";

export interface EventsOptions {
  /** null: the deployment that runs, else the last that did. */
  readonly id: number | null;
  /** Whether to go on until the deployment has ended. */
  readonly isFollowing: boolean;
  /** The place in the log after the last line that is known. */
  readonly from?: number | null;
  /** The project whose latest deployment is meant. */
  readonly whose?: Pick<Whose, "project" | "within">;
  readonly signal: AbortSignal;
}

/** A connection over the internet may be lost for a moment; a service on this machine that is gone is gone. */
const mostReconnections = 30;
const reconnectAfterMs = 1_000;

/**
 * Yields the events of a deployment as the service sends them. If the connection to another machine is lost, it goes on where
 * it was. Ends early if `signal` is aborted or the service goes away; the caller notices this because the last deployment that
 * it got is not finished.
 *
 * @throws as `callRun`
 */
export async function* readEvents(
  place: ServicePlace,
  options: EventsOptions,
): AsyncGenerator<ControlEvent, void, void> {
  const { isFollowing, signal } = options;
  const known = new Set<string>();
  let last = null as DeploymentJson | null;
  let from = options.from ?? null;
  for (let lost = 0; lost <= mostReconnections; lost += 1) {
    const wanted: EventsOptions = { ...options, id: last?.id ?? options.id, from };
    for await (const event of readOnce(place, wanted)) {
      lost = 0;
      if (event.event === "deployment") last = event.deployment;
      if (event.event === "line") from = event.endByte;
      // All steps come again.
      if (event.event === "step" && known.has(JSON.stringify(event))) continue;
      if (event.event === "step") known.add(JSON.stringify(event));
      yield event;
    }
    if (typeof place === "string" || !isFollowing || signal.aborted || hasEnded(last)) return;
    await sleep(reconnectAfterMs, undefined, { signal }).catch(() => {});
  }
}

function hasEnded(deployment: DeploymentJson | null): boolean {
  return deployment !== null && isFinished(deployment.state);
}

async function* readOnce(
  place: ServicePlace,
  { id, isFollowing, from = null, whose = {}, signal }: EventsOptions,
): AsyncGenerator<ControlEvent, void, void> {
  try {
    const asked = { ...whose, id: id ?? ("latest" as const), from: from ?? undefined };
    const follow = isFollowing ? ("true" as const) : ("false" as const);
    yield* parseLines<ControlEvent>(await openCall(place, "events", { ...asked, follow }, { signal }));
  } catch (error) {
    // While the page is away, for what was followed already.
    const isAway = from !== null && typeof place !== "string";
    if (!signal.aborted && !isAway && (error as NodeJS.ErrnoException).code !== "ECONNRESET") throw error;
  }
}
