import { runProgram } from "../run-program.ts";
import { parseAddress, type RemoteAddress, withoutPassword } from "./remote-address.ts";

/** What the remote of the repository answers, asked as the service asks: nobody is there to answer a question. */
export type RemoteAnswer =
  | { readonly kind: "none"; readonly others: readonly string[] }
  | { readonly kind: "unasked" }
  | { readonly kind: "refs"; readonly address: RemoteAddress; readonly refs: ReadonlyMap<string, string> }
  | {
      readonly kind: "failed";
      readonly address: RemoteAddress;
      readonly cause: RemoteCause;
      /** What git and ssh said. */
      readonly lines: string;
    };

/** Why it did not answer, by what git and ssh said of it. */
export type RemoteCause = (typeof causes)[number][0] | "timeout" | "unknown";

const timeoutMs = 5_000;

/** In this order: what ssh says of a host key comes with a "permission denied" of git at the end. */
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

/** Asks for the branches of `origin`. */
export async function askRemote(repoPath: string, env: Record<string, string>): Promise<RemoteAnswer> {
  const git = (...args: readonly string[]) =>
    runProgram(["git", "-C", repoPath, ...args], { env, timeoutMs });
  const remotes = await git("remote");
  if (remotes.kind === "missing" || remotes.code !== 0) return { kind: "unasked" };
  const names = remotes.output.split("\n").filter(Boolean);
  if (!names.includes("origin")) return { kind: "none", others: names };
  const url = await git("ls-remote", "--get-url", "origin");
  const address = parseAddress(url.kind === "ended" ? url.output.trim() : "");
  const asked = await git("ls-remote", "origin", "HEAD", "refs/heads/*");
  if (asked.kind === "missing") return { kind: "unasked" };
  if (asked.code === 0) return { kind: "refs", address, refs: readRefs(asked.output) };
  const cause = asked.code === null ? "timeout" : causeOf(asked.lines);
  return { kind: "failed", address, cause, lines: withoutPassword(asked.lines) };
}

function causeOf(lines: string): RemoteCause {
  return causes.find(([, pattern]) => pattern.test(lines))?.[0] ?? "unknown";
}

function readRefs(output: string): ReadonlyMap<string, string> {
  const rows = output.split("\n").filter(Boolean);
  return new Map(rows.map((row) => row.split("\t").reverse() as [string, string]));
}
