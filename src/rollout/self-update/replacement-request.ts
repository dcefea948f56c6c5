import { randomUUID } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../log.ts";
import type { ComposeTarget } from "../../platform/compose/commands.ts";
import { replaceFile } from "../../platform/replace-file.ts";
import type { ServiceRollout } from "../context.ts";
import { note, outcomeOf, type ServiceOutcome } from "../report/report.ts";
import { stateFault } from "../state.ts";

/**
 * A file in the state directory, written by a roll-out that runs in Hotpush's own container. It asks the service there to
 * remove or replace the container when its deployment is recorded.
 */
export interface ReplacementRequest {
  /** Distinguishes requests for the same container. Older versions of Hotpush wrote none. */
  readonly id?: string;
  /** The id of the container to remove. */
  readonly old: string;
  /** The helper container to start if two cannot run at once; null if the new container already runs, or Swarm acts. */
  readonly helper: Helper | null;
  /** Swarm was asked to replace it: the service only waits. */
  readonly isBySwarm?: boolean;
  /** The lock that the roll-out holds until it ends; the container is not removed before. */
  readonly lockPath?: string;
}

export interface Helper {
  readonly name: string;
  readonly project: string;
  /** Arguments of `hotpush`. */
  readonly args: readonly string[];
}

type Replacing = Pick<ServiceRollout, "own" | "statePath" | "target" | "report" | "service" | "commit"> & {
  readonly project: { readonly name: string };
};

/**
 * Asks the service in this container to remove it, now that a new container serves. The service does so when the
 * deployment of this roll-out is recorded. A roll-out by hand belongs to no deployment, so the service also waits for
 * the end of the roll-out itself.
 */
export function requestRemoval({
  own,
  statePath,
  lockPath,
}: Pick<ServiceRollout, "own" | "statePath" | "lockPath">): void {
  if (own) writeReplacementRequest(statePath, { old: own.id, helper: null, lockPath });
}

/**
 * Asks the service in this container to let a helper container replace it, because two of it cannot run at once. The
 * service does so when the deployment of this roll-out is recorded. Until then nothing changes, and new pushes wait for
 * the new container.
 */
export function requestRecreation(
  on: Replacing,
  containers: readonly { readonly name: string }[],
  reason: string,
): ServiceOutcome {
  const { own, statePath, project, target, service, commit } = on;
  if (own) {
    const args = ["rollout", "--no-build", ...locationOf(target), "--commit", commit, service.name];
    const helper = { name: `${project.name}-${service.name}-helper`, project: project.name, args };
    writeReplacementRequest(statePath, { old: own.id, helper });
  }
  note(on, `is Hotpush itself: a helper container replaces it when this deployment has ended (${reason})`);
  return outcomeOf(service, "postponed", { old: containers }, { reason });
}

/**
 * The helper has the mounts of this container, but not the link at the host's path (locate-project.ts). So it gets the
 * directory as it is in here, and makes the link itself: then the paths of the files are right for it, too.
 */
function locationOf({ directoryHere, projectDirectory, files }: ComposeTarget): readonly string[] {
  return ["--directory", directoryHere ?? projectDirectory, ...files.flatMap((file) => ["--file", file])];
}

/**
 * Writes a request. It replaces an earlier one.
 *
 * @returns the request, to pass to `removeReplacementRequest`
 * @throws ProblemError `state_unusable`
 */
export function writeReplacementRequest(statePath: string, wanted: ReplacementRequest): ReplacementRequest {
  const path = pathIn(statePath);
  const request = { ...wanted, id: randomUUID() };
  try {
    replaceFile(path, `${JSON.stringify(request)}\n`, { mode: 0o600, owner: null });
    return request;
  } catch (error) {
    throw stateFault(path, error);
  }
}

/** The latest request, or null. A damaged one counts as none: the next roll-out asks again. */
export function readReplacementRequest(statePath: string): ReplacementRequest | null {
  try {
    return JSON.parse(readFileSync(pathIn(statePath), "utf8")) as ReplacementRequest;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Removes `request`, unless a newer one has replaced it. */
export function removeReplacementRequest(statePath: string, { id, old }: ReplacementRequest): void {
  const present = readReplacementRequest(statePath);
  if (present?.id === id && present?.old === old) rmSync(pathIn(statePath), { force: true });
}

/** Logs why `request` cannot be met, and removes it. */
export function giveUp(
  { statePath, log }: { readonly statePath: string; readonly log: Log },
  request: ReplacementRequest,
  reason: string,
): void {
  removeReplacementRequest(statePath, request);
  const text = `${reason}. This container goes on; the next roll-out retries.`;
  log.error({ event: "service.not_replaced" }, text);
}

function pathIn(statePath: string): string {
  return join(statePath, "replacement.json");
}
