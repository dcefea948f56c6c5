import { ProblemError } from "../problems.ts";
import type { RolloutRequest } from "./request.ts";
import { type RolloutEnding, rollOut } from "./rollout.ts";
import { noGoodVersion, previousVersion, type Version } from "./versions.ts";

/**
 * Brings the previous good version back, or that of `commit` (any number of its first digits), by the same roll-out
 * without a build: no request is dropped. All services go back: a version is what they are together.
 */
export async function rollBack(
  request: Omit<RolloutRequest, "services">,
  commit?: string,
  roll: typeof rollOut = rollOut,
): Promise<RolloutEnding> {
  const chooseVersion = (versions: readonly Version[]) => {
    const version = previousVersion(versions, commit);
    if (version) return version;
    throw new ProblemError({ code: "no_previous_version", detail: noGoodVersion(versions, commit) });
  };
  return roll({ ...request, services: [], chooseVersion, withBuild: false, withPull: false });
}
