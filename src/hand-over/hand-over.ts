import { repeat } from "../platform/repeat.ts";
import {
  type ReplacementRequest,
  readReplacementRequest,
} from "../rollout/own-container/replacement-request.ts";
import { concludeHelper, replaceByHelper } from "./by-helper.ts";
import { concludeSwarm, createSwarmWait } from "./by-swarm.ts";
import { engineOf, giveUp, type HandOverContext } from "./context.ts";
import { leave } from "./leave.ts";
import { readOwnId } from "./replacement-check.ts";

export interface HandOverOptions extends HandOverContext {
  /** Whether a deployment is running here. */
  readonly isBusy: () => boolean;
}

export interface HandOver {
  readonly start: () => void;
  readonly stop: () => void;
}

const lookIntervalMs = 500;

/**
 * Lets a new container take the place of the one that the service is in, as a roll-out has asked: when no deployment
 * runs here any more, so that its record is finished. Where the new one runs already, this one stops and removes
 * itself; where two cannot run, a helper container puts the new one in its place; Swarm does it itself.
 */
export function createHandOver(options: HandOverOptions): HandOver {
  const { statePath, isBusy, log } = options;
  const ownId = readOwnId();
  const awaitSwarm = createSwarmWait(options);

  async function look(): Promise<void> {
    const request = readReplacementRequest(statePath);
    if (request === null || isBusy()) return;
    if (request.old !== ownId) await conclude(options, request);
    else if (request.isBySwarm) awaitSwarm(request);
    else await makeWay(options, request);
  }

  const text = "The replacement failed; trying again";
  const onFault = (error: unknown) => log.error({ event: "service.not_replaced", err: error }, text);
  const looks = repeat(look, { intervalMs: lookIntervalMs, onFault });
  return {
    start() {
      if (ownId !== null) looks.start();
    },
    stop: looks.stop,
  };
}

/** In the old container. */
async function makeWay(context: HandOverContext, request: ReplacementRequest): Promise<void> {
  const { findOwnService } = await import("../rollout/own-container/own-service.ts");
  const engine = await engineOf(context);
  const own = await findOwnService(engine);
  if (own === null) giveUp(context, request, "This container is not to be found at the Docker engine");
  else if (request.helper) await replaceByHelper(context, engine, own, request, request.helper);
  else await leave(context, engine, own, request);
}

/** In the new container: tells what became of the replacement. */
async function conclude(context: HandOverContext, request: ReplacementRequest): Promise<void> {
  if (request.helper) await concludeHelper(context, request, request.helper);
  if (request.isBySwarm) await concludeSwarm(context, request);
}
