import {
  type ReplacementRequest,
  removeReplacementRequest,
} from "../rollout/own-container/replacement-request.ts";
import { engineOf, giveUp, type HandOverContext } from "./context.ts";

/** Swarm stops a task seconds after it was told to; where the new one starts first, when that is healthy. */
const patienceMs = 10 * 60_000;

/** Gives a function, to be called again and again, that gives a request up with which Swarm does nothing. */
export function createSwarmWait(context: HandOverContext): (request: ReplacementRequest) => void {
  let waiting: { readonly id: string | undefined; readonly sinceMs: number } | null = null;
  return (request) => {
    if (waiting === null || waiting.id !== request.id)
      waiting = { id: request.id, sinceMs: performance.now() };
    if (performance.now() - waiting.sinceMs < patienceMs) return;
    waiting = null;
    giveUp(context, request, "Swarm was told to replace this container, and has not done so");
  };
}

/** In the new container: tells what became of the update, once Swarm has ended it. */
export async function concludeSwarm(context: HandOverContext, request: ReplacementRequest): Promise<void> {
  const { findOwnUpdate } = await import("../rollout/swarm/own-task.ts");
  const update = await findOwnUpdate(await engineOf(context));
  if (update?.state === "updating" || update?.state === "rollback_started") return;
  removeReplacementRequest(context.statePath, request);
  const fields = { event: "service.replaced_by_swarm", state: update?.state ?? null };
  const known = update?.message ?? "nothing is known of an update";
  const text = `Swarm has replaced the task that Hotpush was in: ${known}`;
  if (update?.state === "completed") context.log.info(fields, text);
  else context.log.error(fields, text);
}
