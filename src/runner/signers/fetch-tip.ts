import { isAncestor, runGit } from "../../platform/git.ts";
import { childEnvironment } from "../environment.ts";
import type { SecretSources } from "../redaction/known-secrets.ts";
import { readRemoteHead } from "../remote-head.ts";

export interface FetchOptions extends SecretSources {
  readonly signal: AbortSignal;
  /** Takes secrets out of what git says. */
  readonly redact: (text: string) => string;
}

/** The newest commit of a branch, or why there is none as a sentence. */
export type FetchedTip = { readonly commit: string } | { readonly failure: string };

const timeoutMs = 10 * 60_000;

/**
 * Brings the tip of `ref` and its history into the repository, without moving any ref there. The tip must contain
 * `commit`: a push that names another one is not of this branch, or came before the host's servers agreed.
 */
export async function fetchTip(
  options: FetchOptions,
  { ref, commit }: { readonly ref: string; readonly commit: string },
): Promise<FetchedTip> {
  // Asked first: `git fetch` takes a tag or another branch whose name ends alike if the remote has no such branch.
  const head = await readRemoteHead(options, ref);
  if (head.kind === "unknown") return { failure: `Nothing was run: ${head.detail}` };
  const env = childEnvironment(options);
  const quiet = ["--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--refmap="];
  const ending = await runGit(
    options.repoPath,
    // Housekeeping would go on in the background.
    [
      "-c",
      "gc.auto=0",
      "-c",
      "maintenance.auto=false",
      "fetch",
      ...quiet,
      "--",
      env.DEPLOY_REMOTE || "origin",
      ref,
    ],
    { env, timeoutMs, signal: options.signal },
  );
  if (ending.kind !== "exited" || ending.code !== 0) {
    const reason =
      ending.kind === "not_found" ? "git is not installed" : (ending.lastLines.at(-1) ?? ending.kind);
    return {
      failure: `git could not fetch ${ref}: ${options.redact(reason)} Nothing was run. Check address, credentials and network.`,
    };
  }
  if (await isAncestor(options.repoPath, commit, head.commit, asItIs(env))) return { commit: head.commit };
  return {
    failure: `Commit ${commit.slice(0, 7)} is not in ${ref}, which is at ${head.commit.slice(0, 7)}: a force push has replaced it, or it is gone. Nothing was run. To deploy what the branch is now: hotpush deploy`,
  };
}

/** The environment in which git takes the history as it is, whatever replacements the repository has. */
export function asItIs(env: Readonly<Record<string, string>>): Record<string, string> {
  return { ...env, GIT_NO_REPLACE_OBJECTS: "1" };
}
