import { randomUUID } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../log.ts";
import { replaceFile } from "../../platform/replace-file.ts";
import { stateFault } from "../state.ts";

/**
 * A file in the state directory, written by a roll-out that runs in Hotpush's own container. It asks the service there to
 * remove or replace the container when its deployment is recorded.
 */
export interface ReplacementRequest extends WantedReplacement {
  /** Distinguishes requests for the same container. Older versions of Hotpush wrote none. */
  readonly id?: string;
}

/** The request as a roll-out states it. */
export interface WantedReplacement {
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

/**
 * Writes a request. It replaces an earlier one.
 *
 * @returns the request, to pass to `removeReplacementRequest`
 * @throws ProblemError `state_unusable`
 */
export function writeReplacementRequest(statePath: string, wanted: WantedReplacement): ReplacementRequest {
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
