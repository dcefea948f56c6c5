import { ProblemError } from "../problems.ts";
import type { RolloutEnding } from "./report/report.ts";
import type { RolloutRequest } from "./request.ts";
import { noGoodVersion, previousVersion, type Version } from "./versions.ts";

/**
 * Rolls back to the previous good version, or to the one of `commit` (any number of its first digits), by `rollOut`
 * without a build: no request is dropped. All services go back, because a version is all of them together.
 */
export async function rollBackBy(
  rollOut: (request: RolloutRequest) => Promise<RolloutEnding>,
  request: Omit<RolloutRequest, "services">,
  commit: string | undefined,
): Promise<RolloutEnding> {
  const chooseVersion = (versions: readonly Version[]) => {
    const version = previousVersion(versions, commit);
    if (version) return version;
    throw new ProblemError({ code: "no_previous_version", detail: noGoodVersion(versions, commit) });
  };
  return rollOut({ ...request, services: [], chooseVersion, withBuild: false, withPull: false });
}
