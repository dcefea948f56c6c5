import { readFileSync } from "node:fs";
import { containerIdIn } from "../../platform/docker/mountinfo.ts";
import { repeat } from "../../platform/repeat.ts";
import type { SelfUpdateContext } from "./replace-container.ts";
import { giveUp, type ReplacementRequest, readReplacementRequest } from "./replacement-request.ts";

export interface SelfUpdateOptions extends SelfUpdateContext {
  /** Whether a deployment is running here. */
  readonly isBusy: () => boolean;
}

export interface SelfUpdate {
  readonly start: () => void;
  readonly stop: () => void;
}

const lookIntervalMs = 500;

/** Swarm stops a task seconds after the update; with start-first, as soon as the new task is healthy. */
const swarmPatienceMs = 10 * 60_000;

/**
 * Replaces the container of this service by a new one if a roll-out has asked for it. It waits until no deployment runs
 * here, so that the deployment's record is complete. If the new container already runs, this one stops and removes
 * itself. If two cannot run at once, a helper container replaces this one. Swarm does it by itself.
 *
 * The code that talks to the Docker engine is only loaded when there is a request: the service starts faster without it.
 */
export function createSelfUpdate(options: SelfUpdateOptions): SelfUpdate {
  const { statePath, isBusy, log } = options;
  const ownId = readOwnId();
  const waitForSwarm = createSwarmWait(options);

  async function look(): Promise<void> {
    const request = readReplacementRequest(statePath);
    if (request === null || isBusy()) return;
    const isHere = request.old === ownId;
    if (isHere && request.isBySwarm) return waitForSwarm(request);
    // In the new container, a request stays if the old one removed itself: there is nothing to do.
    if (!isHere && !request.helper && !request.isBySwarm) return;
    const { concludeReplacement, replaceContainer } = await import("./replace-container.ts");
    await (isHere ? replaceContainer : concludeReplacement)(options, request);
  }

  const text = "The replacement failed; retrying";
  const onFault = (error: unknown) => log.error({ event: "service.not_replaced", err: error }, text);
  const looks = repeat(look, { intervalMs: lookIntervalMs, onFault });
  return {
    start() {
      if (ownId !== null) looks.start();
    },
    stop: looks.stop,
  };
}

/** Whether a roll-out has asked to replace this very container: then no deployment may start in it. */
export function createReplacementCheck(statePath: string): () => boolean {
  const ownId = readOwnId();
  return () => ownId !== null && readReplacementRequest(statePath)?.old === ownId;
}

/** The id of the container that this process is in; null outside of a container. */
function readOwnId(): string | null {
  return containerIdIn(readFileSync("/proc/self/mountinfo", "utf8"));
}

/** Makes a function to call repeatedly: it gives up a request that Swarm has not acted on for `swarmPatienceMs`. */
function createSwarmWait(context: SelfUpdateContext): (request: ReplacementRequest) => void {
  let waiting: { readonly id: string | undefined; readonly sinceMs: number } | null = null;
  return (request) => {
    if (waiting === null || waiting.id !== request.id)
      waiting = { id: request.id, sinceMs: performance.now() };
    if (performance.now() - waiting.sinceMs < swarmPatienceMs) return;
    waiting = null;
    giveUp(context, request, "Swarm was asked to replace this container and has not done so");
  };
}
