import { readCommitStatus } from "../../config/commit-status.ts";
import { findTokenFault } from "../../notifications/commit-status.ts";
import { type CheckFinding, ok, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";

/** Asks the git host whether the token may show results on commits; nothing is shown. */
export async function checkCommitStatus({ commitStatus }: DoctorContext): Promise<CheckFinding> {
  const status = readCommitStatus(commitStatus.repository, commitStatus.tokenPath);
  if (status === null) return skip("COMMIT_STATUS_URL is not set: no results are shown on commits");
  if (typeof status === "string") return warning(status);
  const { href } = status.url;
  try {
    const fault = await findTokenFault(status);
    if (fault === null) return ok(`the token may show results on commits of ${href}`);
    const change = "make a token with the rights that docs/git-hosts.md lists, and put it into that file";
    return warning(`No result is shown on commits of ${href}: ${fault}.`, { change });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return warning(`${href} cannot be asked about the token (${code ?? "unknown error"}).`);
  }
}
