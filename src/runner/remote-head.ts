import { runGit } from "../platform/git.ts";
import { childEnvironment } from "./environment.ts";
import type { SecretSources } from "./redaction/known-secrets.ts";
import { createScriptRedactor } from "./redaction/script-redactor.ts";

export type RemoteHead =
  | { readonly kind: "head"; readonly commit: string }
  | { readonly kind: "unknown"; readonly detail: string };

const usualTimeoutMs = 30_000;

/**
 * Asks the remote of the repository what `ref` points at now, with the credentials that the script would use. What git
 * has started for it (ssh, git-remote-https) is gone with it when the time is over.
 */
export async function readRemoteHead(
  options: SecretSources & { readonly signal?: AbortSignal },
  ref: string,
  timeoutMs: number = usualTimeoutMs,
): Promise<RemoteHead> {
  const env = childEnvironment(options);
  // By the name that examples/deploy.sh takes, where DEPLOY_ENV lets it have it.
  const remote = env.DEPLOY_REMOTE || "origin";
  const ending = await runGit(options.repoPath, ["ls-remote", "--", remote, ref], {
    ...{ env, timeoutMs },
    ...(options.signal ? { signal: options.signal } : {}),
  });
  if (ending.kind === "exited" && ending.code === 0) {
    const commit = commitOf(ending.output, ref);
    return commit === null
      ? { kind: "unknown", detail: `the remote has no ${ref}.` }
      : { kind: "head", commit };
  }
  const reason =
    ending.kind === "exited"
      ? ending.lastLines.at(-1) || "git gave no reason"
      : ending.kind === "not_found"
        ? "git is not installed"
        : `the remote did not answer within ${timeoutMs / 1_000} s`;
  // Git may name the URL of the remote, with what stands in it.
  const redactor = createScriptRedactor(options)();
  return { kind: "unknown", detail: `git ls-remote failed in ${options.repoPath}: ${redactor.text(reason)}` };
}

/** `git ls-remote` matches the ends of names: for `refs/heads/main` it also lists `refs/heads/a/refs/heads/main`. */
function commitOf(output: string, ref: string): string | null {
  const rows = output.split("\n").map((row) => row.split("\t"));
  return rows.find(([, name]) => name === ref)?.[0] ?? null;
}
