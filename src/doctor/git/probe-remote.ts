import { type GitReader, gitOutput, runGit } from "../../platform/git.ts";
import { type GitRemoteUrl, parseGitRemoteUrl, withoutCredentials } from "../../platform/git-remote-url.ts";

/** What the remote of the repository answers if it is asked as the service asks: nobody can answer a prompt. */
export type RemoteAnswer =
  | { readonly kind: "none"; readonly others: readonly string[] }
  | { readonly kind: "unasked" }
  | { readonly kind: "refs"; readonly url: GitRemoteUrl; readonly refs: ReadonlyMap<string, string> }
  | RemoteFailure;

export interface RemoteFailure {
  readonly kind: "failed";
  readonly url: GitRemoteUrl;
  readonly cause: RemoteCause;
  /** The last lines of git and ssh. */
  readonly lines: string;
}

/** Why the remote did not answer, by the words of git and ssh. */
export type RemoteCause = (typeof causes)[number][0] | "timeout" | "unknown";

const timeoutMs = 5_000;

/** The first match counts: after ssh's words about a host key, git adds a "permission denied". */
const causes = [
  ["host-key-changed", /REMOTE HOST IDENTIFICATION HAS CHANGED|host key .* has changed/i],
  ["host-key-unknown", /Host key verification failed|No \S+ host key is known/i],
  ["name", /Could not resolve host|Name or service not known|name resolution/i],
  ["key-open", /UNPROTECTED PRIVATE KEY FILE/],
  [
    "not-found",
    /repository '.*' not found|Repository not found|does not appear to be a git repository|could not be found|repository not exported|project you were looking for/i,
  ],
  ["denied", /Permission denied|Authentication failed|HTTP 403|error: 403|access denied/i],
  ["asks", /could not read (?:Username|Password)|terminal prompts disabled|unable to read askpass/i],
  ["clock", /certificate (?:has expired|is not yet valid)/i],
  ["certificate", /certificate|SSL|TLS/],
  ["refused", /Connection refused|Failed to connect|Connection reset|unable to connect/i],
  ["timeout", /timed out|No route to host|Network is unreachable/i],
  ["no-ssh", /cannot run ssh|ssh: not found|ssh: No such file/i],
] as const;

/** Asks `origin` for its branches. Takes 15 s at most. */
export async function probeRemote(repoPath: string, reader: GitReader): Promise<RemoteAnswer> {
  const options = { ...reader, timeoutMs };
  const remotes = await gitOutput(repoPath, ["remote"], options);
  if (remotes === null) return { kind: "unasked" };
  const names = remotes.split("\n").filter(Boolean);
  if (!names.includes("origin")) return { kind: "none", others: names };
  const url = parseGitRemoteUrl(
    (await gitOutput(repoPath, ["ls-remote", "--get-url", "origin"], options)) ?? "",
  );
  const ending = await runGit(repoPath, ["ls-remote", "origin", "HEAD", "refs/heads/*"], options);
  if (ending.kind === "not_found") return { kind: "unasked" };
  if (ending.kind === "exited" && ending.code === 0)
    return { kind: "refs", url, refs: readRefs(ending.output) };
  const lines = ending.lastLines.join("\n");
  const cause = ending.kind === "exited" ? causeOf(lines) : "timeout";
  return { kind: "failed", url, cause, lines: withoutCredentials(lines) };
}

function causeOf(lines: string): RemoteCause {
  return causes.find(([, pattern]) => pattern.test(lines))?.[0] ?? "unknown";
}

function readRefs(output: string): ReadonlyMap<string, string> {
  const rows = output.split("\n").filter(Boolean);
  return new Map(rows.map((row) => row.split("\t").reverse() as [string, string]));
}
