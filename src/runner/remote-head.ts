import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { childEnvironment } from "./environment.ts";
import type { SecretSources } from "./masking/known-secrets.ts";
import { createScriptMask } from "./masking/script-mask.ts";

export type RemoteHead =
  | { readonly kind: "head"; readonly commit: string }
  | { readonly kind: "unknown"; readonly detail: string };

const timeoutMs = 30_000;

/** Asks the remote of the repository what `ref` points at now, with the credentials that the script would use. */
export async function readRemoteHead(options: SecretSources, ref: string): Promise<RemoteHead> {
  try {
    const { stdout } = await promisify(execFile)(
      "git",
      ["-C", options.repoPath, "ls-remote", "--exit-code", "origin", ref],
      { env: childEnvironment(options), timeout: timeoutMs, killSignal: "SIGKILL" },
    );
    return { kind: "head", commit: stdout.split(/\s/)[0] ?? "" };
  } catch (error) {
    const { stderr, code } = error as { stderr?: string; code?: unknown };
    if (code === 2) return { kind: "unknown", detail: `the remote has no ${ref}.` };
    const reason = stderr?.trim().split("\n").at(-1) || "git gave no reason";
    // Git may name the URL of the remote, with what stands in it.
    const mask = createScriptMask(options)();
    return { kind: "unknown", detail: `git ls-remote failed in ${options.repoPath}: ${mask.text(reason)}` };
  }
}
