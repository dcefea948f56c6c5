import { randomUUID } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "../../platform/replace-file.ts";
import { stateFault } from "../state-fault.ts";

/**
 * Left in the state directory by a roll-out that runs within Hotpush's own container, for the service there: the
 * container is to go, once the deployment is recorded to its end.
 */
export interface ReplacementRequest extends WantedReplacement {
  /** Tells it from other requests for the same container; there is none in one that an older Hotpush wrote. */
  readonly id?: string;
}

/** What a roll-out asks for. */
export interface WantedReplacement {
  /** The id of the container that is to go. */
  readonly old: string;
  /** What a helper container is to do where two cannot run; null where the new container runs already, or Swarm acts. */
  readonly helper: Helper | null;
  /** Swarm was told to replace it, and is only waited for. */
  readonly isBySwarm?: boolean;
  /** The lock that the roll-out holds to its end: before that, the container does not go. */
  readonly lockPath?: string;
}

export interface Helper {
  readonly name: string;
  readonly project: string;
  /** Arguments of `hotpush`. */
  readonly args: readonly string[];
}

/**
 * Asks for what is wanted, in place of the request that was there, if any.
 *
 * @returns the request, by which it can be removed
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

/** The request that was made last, or null. One that is damaged asks for nothing: the next roll-out asks again. */
export function readReplacementRequest(statePath: string): ReplacementRequest | null {
  try {
    return JSON.parse(readFileSync(pathIn(statePath), "utf8")) as ReplacementRequest;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Removes `request`, unless a newer one is in its place. */
export function removeReplacementRequest(statePath: string, { id, old }: ReplacementRequest): void {
  const present = readReplacementRequest(statePath);
  if (present?.id === id && present?.old === old) rmSync(pathIn(statePath), { force: true });
}

function pathIn(statePath: string): string {
  return join(statePath, "replacement.json");
}
