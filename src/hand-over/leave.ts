import { setTimeout as pause } from "node:timers/promises";
import type { Engine } from "../platform/docker/engine.ts";
import type { OwnService } from "../rollout/own-container/own-service.ts";
import type { ReplacementRequest } from "../rollout/own-container/replacement-request.ts";
import { giveUp, type HandOverContext } from "./context.ts";

/** A roll-out that has let go of its lock needs milliseconds to exit. */
const lastWordsMs = 500;

/**
 * Stops the service and removes its container, where a new one serves beside it. A roll-out by hand in this container
 * would end with it: while one runs, nothing is done.
 */
export async function leave(
  context: HandOverContext,
  engine: Engine,
  own: OwnService,
  request: ReplacementRequest,
): Promise<void> {
  const { unlessRollingOut } = await import("../rollout/own-container/unless-rolling-out.ts");
  await unlessRollingOut(request.lockPath, async () => {
    // Whoever runs it is to get its exit code, not that of a process that was killed on its last line.
    await pause(lastWordsMs);
    await leaveNow(context, engine, own, request);
  });
}

async function leaveNow(
  context: HandOverContext,
  engine: Engine,
  own: OwnService,
  request: ReplacementRequest,
): Promise<void> {
  const { findSuccessor } = await import("../rollout/own-container/find-successor.ts");
  const { retireOwnContainer } = await import("../rollout/own-container/retire-own-container.ts");
  const successor = await findSuccessor(engine, own);
  if (successor === null) {
    return giveUp(context, request, "The container that was to take the place of this one does not serve");
  }
  const fields = { event: "service.replaced", by: successor };
  context.log.info(fields, `${successor} takes the place of this container`);
  await context.close();
  await retireOwnContainer(engine);
}
