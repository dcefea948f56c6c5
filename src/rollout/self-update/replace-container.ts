import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../../log.ts";
import { listContainers, removeContainer } from "../../platform/docker/container.ts";
import { connectEngine, type Engine } from "../../platform/docker/engine.ts";
import { isServing } from "../../platform/docker/health.ts";
import { withOwnHealth } from "../../platform/docker/health-check.ts";
import { findOwnService, type OwnService } from "../../platform/docker/own-container.ts";
import { ProblemError } from "../../problems.ts";
import { lockRollout, type RolloutLock } from "../lock.ts";
import { findOwnUpdate, isUnderWay } from "../swarm/swarm-service.ts";
import { startHelper, waitForHelper } from "./helper-container.ts";
import {
  giveUp,
  type Helper,
  type ReplacementRequest,
  removeReplacementRequest,
} from "./replacement-request.ts";

/** What a self-update needs of the service. */
export interface SelfUpdateContext {
  readonly statePath: string;
  /** The variables that a deploy script gets. They say which Docker engine it talks to. */
  readonly scriptEnv: Record<string, string>;
  /** Replaces the secrets in the output of a helper. */
  readonly redact: (text: string) => string;
  /** Stops the service. Called when no deployment runs. */
  readonly close: () => Promise<void>;
  readonly log: Log;
}

/** A roll-out exits milliseconds after it has released its lock. */
const rolloutExitMs = 500;

/** Runs in the old container: makes room for the new one, as `request` says. Does not return if that works. */
export async function replaceContainer(
  context: SelfUpdateContext,
  request: ReplacementRequest,
): Promise<void> {
  const engine = engineOf(context);
  const own = await findOwnService(engine);
  if (own === null) giveUp(context, request, "The Docker engine does not know this container");
  else if (request.helper) await replaceByHelper(context, engine, own, request, request.helper);
  else await unlessRollingOut(request.lockPath, () => leave(context, engine, own, request));
}

/** Runs in the new container: logs how the replacement ended, and removes the helper and the request. */
export async function concludeReplacement(
  context: SelfUpdateContext,
  request: ReplacementRequest,
): Promise<void> {
  if (request.helper) await concludeHelper(context, request, request.helper);
  if (request.isBySwarm) await concludeSwarm(context, request);
}

function engineOf({ scriptEnv }: SelfUpdateContext): Engine {
  return connectEngine(scriptEnv.DOCKER_HOST);
}

/** Lets a helper container replace this one. Returns only if that fails. */
export async function replaceByHelper(
  context: SelfUpdateContext,
  engine: Engine,
  own: OwnService,
  request: ReplacementRequest,
  helper: Helper,
): Promise<void> {
  const fields = { event: "service.helper", helper: helper.name };
  context.log.info(fields, `${helper.name} replaces this container`);
  await startHelper(engine, own, helper, context.scriptEnv);
  const ending = await waitForHelper(engine, helper.name);
  const lines = context.redact(ending?.lines.join("\n") ?? "");
  const exitCode = ending?.exitCode ?? "unknown";
  giveUp(context, request, `${helper.name} exited with code ${exitCode} and did not replace it:\n${lines}`);
}

/**
 * Runs `work` while no roll-out can run. If a roll-out holds the lock at `lockPath`, it does nothing and does not wait:
 * a roll-out by hand in this container would be killed with it.
 *
 * @param lockPath undefined if no lock is known: then `work` runs at once
 */
export async function unlessRollingOut(
  lockPath: string | undefined,
  work: () => Promise<void>,
): Promise<void> {
  if (lockPath === undefined) return work();
  const lock = await lockIfFree(lockPath);
  if (lock === null) return;
  try {
    await work();
  } finally {
    await lock.release();
  }
}

async function lockIfFree(path: string): Promise<RolloutLock | null> {
  try {
    return await lockRollout(path, 0);
  } catch (error) {
    if (error instanceof ProblemError && error.problem.code === "rollout_locked") return null;
    throw error;
  }
}

/** Stops the service and removes its container, and so this process, if a new container of the service is healthy. */
async function leave(
  context: SelfUpdateContext,
  engine: Engine,
  own: OwnService,
  request: ReplacementRequest,
): Promise<void> {
  // The caller of the roll-out gets its exit code, not the one of a process that was killed on its last line.
  await pause(rolloutExitMs);
  const successor = await findSuccessor(engine, own);
  if (successor === null) {
    return giveUp(context, request, "The container that should replace this one does not serve");
  }
  const fields = { event: "service.replaced", by: successor };
  context.log.info(fields, `${successor} replaces this container`);
  await context.close();
  await removeContainer(engine, own.id);
}

/** The name of another container of the service that serves beside `own`; null if there is none. */
async function findSuccessor(engine: Engine, own: OwnService): Promise<string | null> {
  const containers = await listContainers(engine, own.project, own.service);
  const others = await withOwnHealth(
    engine,
    containers.filter(({ id }) => id !== own.id),
  );
  return others.find(isServing)?.name ?? null;
}

async function concludeHelper(
  context: SelfUpdateContext,
  request: ReplacementRequest,
  helper: Helper,
): Promise<void> {
  const ending = await waitForHelper(engineOf(context), helper.name);
  removeReplacementRequest(context.statePath, request);
  if (ending === null) return;
  const fields = { event: "service.helper_ended", helper: helper.name, exitCode: ending.exitCode };
  const lines = context.redact(ending.lines.join("\n"));
  const text = `${helper.name} exited with code ${ending.exitCode}:\n${lines}`;
  if (ending.exitCode === 0) context.log.info(fields, text);
  else context.log.error(fields, text);
}

/** Waits, over several calls, until Swarm has finished the update. */
async function concludeSwarm(context: SelfUpdateContext, request: ReplacementRequest): Promise<void> {
  const update = await findOwnUpdate(engineOf(context));
  if (isUnderWay(update)) return;
  removeReplacementRequest(context.statePath, request);
  const fields = { event: "service.replaced_by_swarm", state: update?.state ?? null };
  const known = update?.message ?? "no update is known";
  const text = `Swarm has replaced the task of Hotpush: ${known}`;
  if (update?.state === "completed") context.log.info(fields, text);
  else context.log.error(fields, text);
}
