import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "./log.ts";
import type { Engine } from "./rollout/engine/engine.ts";
import { containerIdIn } from "./rollout/engine/own-container.ts";
import type { OwnService } from "./rollout/own-container/own-service.ts";
import {
  type Helper,
  type ReplacementRequest,
  readReplacementRequest,
  removeReplacementRequest,
} from "./rollout/own-container/replacement-request.ts";

export interface HandOverOptions {
  readonly statePath: string;
  /** What a deploy script would get of the environment. */
  readonly scriptEnv: Record<string, string>;
  /** Puts stars in place of the secrets in what a helper wrote. */
  readonly mask: (text: string) => string;
  /** Whether a deployment is running here. */
  readonly isBusy: () => boolean;
  /** Stops the service, nothing of which is running any more. */
  readonly close: () => Promise<void>;
  readonly log: Log;
}

export interface HandOver {
  readonly start: () => void;
  readonly stop: () => void;
}

const lookIntervalMs = 500;

/** A roll-out that has let go of its lock needs milliseconds to exit. */
const lastWordsMs = 500;

/** Swarm stops a task seconds after it was told to; where the new one starts first, when that is healthy. */
const swarmPatienceMs = 10 * 60_000;

/** Whether a roll-out has asked for this very container to be replaced: then nothing more is to be started in it. */
export function createReplacementCheck(statePath: string): () => boolean {
  const ownId = containerIdIn(readFileSync("/proc/self/mountinfo", "utf8"));
  return () => ownId !== null && readReplacementRequest(statePath)?.old === ownId;
}

/**
 * Lets a new container take the place of the one that the service is in, as a roll-out has asked: when no deployment
 * runs here any more, so that its record is finished. Where the new one runs already, this one stops and removes
 * itself; where two cannot run, a helper container puts the new one in its place.
 */
export function createHandOver({
  statePath,
  scriptEnv,
  mask,
  isBusy,
  close,
  log,
}: HandOverOptions): HandOver {
  const ownId = containerIdIn(readFileSync("/proc/self/mountinfo", "utf8"));
  let timer: NodeJS.Timeout | null = null;
  let isAtWork = false;
  let swarmAwaitedSinceMs: number | null = null;

  async function look(): Promise<void> {
    const request = readReplacementRequest(statePath);
    if (request === null || isBusy()) return;
    if (request.old !== ownId) return await conclude(request);
    if (request.isBySwarm) return awaitSwarm(request);
    const { engine, own } = await findOwn();
    if (own === null) return giveUp(request, "This container is not to be found at the Docker engine");
    if (request.helper) await replaceByHelper(engine, own, request, request.helper);
    else await leave(engine, own, request);
  }

  function awaitSwarm(request: ReplacementRequest): void {
    swarmAwaitedSinceMs ??= performance.now();
    if (performance.now() - swarmAwaitedSinceMs < swarmPatienceMs) return;
    swarmAwaitedSinceMs = null;
    giveUp(request, "Swarm was told to replace this container, and has not done so");
  }

  async function findOwn() {
    const { connectEngine } = await import("./rollout/engine/engine.ts");
    const { findOwnService } = await import("./rollout/own-container/own-service.ts");
    const engine = connectEngine(scriptEnv.DOCKER_HOST);
    return { engine, own: await findOwnService(engine) };
  }

  /** A roll-out by hand in this container would end with it: while one runs, the next look comes again. */
  async function leave(engine: Engine, own: OwnService, request: ReplacementRequest): Promise<void> {
    const { unlessRollingOut } = await import("./rollout/own-container/unless-rolling-out.ts");
    await unlessRollingOut(request.lockPath, async () => {
      // Whoever runs it is to get its exit code, not that of a process that was killed on its last line.
      await pause(lastWordsMs);
      await leaveNow(engine, own, request);
    });
  }

  async function leaveNow(engine: Engine, own: OwnService, request: ReplacementRequest): Promise<void> {
    const { findSuccessor } = await import("./rollout/own-container/leave.ts");
    const { retireOwnContainer } = await import("./rollout/own-container/retire-own-container.ts");
    const successor = await findSuccessor(engine, own);
    if (successor === null)
      return giveUp(request, "The container that was to take the place of this one does not serve");
    log.info({ event: "service.replaced", by: successor }, `${successor} takes the place of this container`);
    await close();
    await retireOwnContainer(engine);
  }

  async function replaceByHelper(
    engine: Engine,
    own: OwnService,
    request: ReplacementRequest,
    helper: Helper,
  ): Promise<void> {
    const { seeHelperOff, startHelper } = await import("./rollout/own-container/helper.ts");
    log.info({ event: "service.helper", helper: helper.name }, `${helper.name} replaces this container`);
    await startHelper(engine, own, helper, scriptEnv);
    const ending = await seeHelperOff(engine, helper.name);
    // Who gets here was not replaced.
    const lines = mask(ending?.lines.join("\n") ?? "");
    giveUp(
      request,
      `${helper.name} ended with exit code ${ending?.exitCode ?? "unknown"} and did not replace it:\n${lines}`,
    );
  }

  /** In the new container: tells what became of the replacement. */
  async function conclude(request: ReplacementRequest): Promise<void> {
    if (request.helper) await concludeHelper(request, request.helper);
    if (request.isBySwarm) await concludeSwarm(request);
  }

  async function concludeSwarm(request: ReplacementRequest): Promise<void> {
    const { connectEngine } = await import("./rollout/engine/engine.ts");
    const { findOwnUpdate } = await import("./rollout/swarm/own-task.ts");
    const update = await findOwnUpdate(connectEngine(scriptEnv.DOCKER_HOST));
    if (update?.state === "updating" || update?.state === "rollback_started") return;
    removeReplacementRequest(statePath, request);
    const fields = { event: "service.replaced_by_swarm", state: update?.state ?? null };
    const text = `Swarm has replaced the task that Hotpush was in: ${update?.message ?? "nothing is known of an update"}`;
    if (update?.state === "completed") log.info(fields, text);
    else log.error(fields, text);
  }

  /** Tells what the helper did, and clears it away. */
  async function concludeHelper(request: ReplacementRequest, helper: Helper): Promise<void> {
    const { seeHelperOff } = await import("./rollout/own-container/helper.ts");
    const { connectEngine } = await import("./rollout/engine/engine.ts");
    const ending = await seeHelperOff(connectEngine(scriptEnv.DOCKER_HOST), helper.name);
    removeReplacementRequest(statePath, request);
    if (ending === null) return;
    const fields = { event: "service.helper_ended", helper: helper.name, exitCode: ending.exitCode };
    const text = `${helper.name} ended with exit code ${ending.exitCode}:\n${mask(ending.lines.join("\n"))}`;
    if (ending.exitCode === 0) log.info(fields, text);
    else log.error(fields, text);
  }

  function giveUp(request: ReplacementRequest, reason: string): void {
    removeReplacementRequest(statePath, request);
    log.error(
      { event: "service.not_replaced" },
      `${reason}. This container goes on; the next roll-out tries again.`,
    );
  }

  function lookOnce(): void {
    if (isAtWork) return;
    isAtWork = true;
    look()
      .catch((error) =>
        log.error({ event: "service.not_replaced", err: error }, "The replacement failed; trying again"),
      )
      .finally(() => {
        isAtWork = false;
      });
  }

  return {
    start() {
      if (ownId !== null) timer = setInterval(lookOnce, lookIntervalMs).unref();
    },
    stop() {
      if (timer) clearInterval(timer);
    },
  };
}
