import type { LockedRequest } from "./request.ts";

/** What is known of the one-shot services of a project, by their names. */
export interface OneShots {
  /** A roll back runs none of them: what they changed stays, and an earlier version of them may not know it. */
  readonly isRollBack: boolean;
  /** Those that ran to their end at the commit of the last good version. */
  readonly known: readonly string[];
  /** Those of them for which that is the commit that is rolled out now. */
  readonly ranAtCommit: readonly string[];
}

/** Reads it from the last good version. */
export function oneShotsOf(
  { version, current }: Pick<LockedRequest, "version" | "current">,
  commit: string,
): OneShots {
  const known = current?.ran ?? [];
  // By the digits that images are named by: whoever names the commit need not give more.
  const isSame = current?.commit.slice(0, 12) === commit.slice(0, 12);
  return { isRollBack: version !== null, known, ranAtCommit: isSame ? known : [] };
}
