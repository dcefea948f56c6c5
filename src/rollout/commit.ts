import { checkedOutCommit, runGit } from "../platform/git.ts";

/**
 * The commit that images and versions are named after: the one given with `--commit`, else the one checked out in
 * `directory`. DEPLOY_COMMIT counts only outside of git: it is the pushed commit, and the branch may have moved on
 * before the deploy script pulled.
 *
 * @returns 12 to 64 hexadecimal digits; if there is neither, twelve of the time
 */
export async function commitOf(
  directory: string,
  named: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const known =
    commitIn(named) ?? (await checkedOutCommit(directory, { env })) ?? commitIn(env.DEPLOY_COMMIT);
  return known ?? timeAsCommit(Date.now());
}

/**
 * The commit that was checked out in `directory` at a given time, as far back as git's reflog of HEAD goes.
 *
 * @param atMs milliseconds since 1970
 * @returns 40 (or 64) hexadecimal digits, or null if git does not know
 */
export async function commitAt(
  directory: string,
  atMs: number,
  env: NodeJS.ProcessEnv,
): Promise<string | null> {
  // Newest first, each line such as "<commit> HEAD@{1795358424}"
  const list = ["log", "--walk-reflogs", "--max-count=1000", "--format=%H %gd", "--date=unix", "HEAD", "--"];
  const ending = await runGit(
    directory,
    ["-c", "safe.directory=*", "-c", "log.showSignature=false", ...list],
    { env },
  );
  if (ending.kind !== "exited" || ending.code !== 0) return null;
  const entries = ending.output.matchAll(/^([0-9a-f]{40}|[0-9a-f]{64}) HEAD@\{(\d+)\}$/gm);
  const entry = [...entries].find(([, , atS]) => Number(atS) * 1_000 <= atMs);
  return entry?.[1] ?? null;
}

/** Twelve digits of a time, used in place of a commit outside of git. */
export function timeAsCommit(atMs: number): string {
  return new Date(atMs).toISOString().replace(/\D/g, "").slice(2, 14);
}

function commitIn(text: string | undefined): string | null {
  return text !== undefined && /^[0-9a-f]{12,64}$/i.test(text) ? text.toLowerCase() : null;
}
