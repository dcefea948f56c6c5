import type { CommitStatus } from "../config/commit-status.ts";
import { askHost, hostApis } from "./commit-status.ts";
import type { StatusOnCommit } from "./hosts/host-api.ts";

/**
 * Asks the git host whether the token may show results on commits. It shows one on a commit that cannot be there: the
 * host checks the token first, so nothing is changed.
 *
 * @returns what is wrong, or null
 * @throws the system's error, if the host cannot be reached
 */
export async function findTokenFault(settings: CommitStatus): Promise<string | null> {
  const api = hostApis[settings.host];
  const seen = await askHost(settings, { method: "GET", url: api.repository(settings) });
  if (seen.status === 401) return "the host does not accept the token (401)";
  if (seen.status !== 200) return `the token does not show the repository (${seen.status})`;
  const nowhere: StatusOnCommit = {
    ...{ commit: "0".repeat(40), branch: "main", context: "hotpush/doctor", link: null },
    state: "running",
    description: "A check that the token may show results",
  };
  const answer = await askHost(settings, api.status(settings, nowhere));
  return api.mayShow(answer) ? null : `the token may not show results on commits (${answer.status})`;
}
