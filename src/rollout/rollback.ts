import { reportFailure } from "./report/report.ts";
import type { RolloutRequest } from "./request.ts";
import { type RolloutEnding, rollOut } from "./rollout.ts";
import { previousVersion, readVersions } from "./versions.ts";

/**
 * Brings the previous good version back, or that of `commit` (any number of its first digits), by the same roll-out
 * without a build: no request is dropped.
 */
export async function rollBack(
  request: RolloutRequest,
  commit?: string,
  roll: typeof rollOut = rollOut,
): Promise<RolloutEnding> {
  const versions = await readVersions(request.versionsPath);
  const version = previousVersion(versions, commit);
  if (version) return roll({ ...request, version, withBuild: false, withPull: false });
  const known = versions.map((one) => one.commit.slice(0, 12)).join(", ") || "none";
  const wanted = commit === undefined ? "before the present one" : `of the commit ${commit}`;
  const detail = `There is no good version ${wanted} to go back to. Good versions, oldest first: ${known}. Nothing was changed.`;
  return reportFailure(request.report, { code: "no_previous_version", detail });
}
