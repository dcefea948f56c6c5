import { join } from "node:path";
import { adminSocket } from "../config/machine-part.ts";
import { sendHttp } from "../platform/http.ts";
import { replaceFile } from "../platform/replace-file.ts";

/** Caddy's answer to a configuration. */
export type LoadResult =
  | { readonly kind: "loaded" }
  | { readonly kind: "rejected"; readonly reason: string }
  /** Caddy does not run, or is just starting. */
  | { readonly kind: "no answer" };

export interface LoadOptions {
  readonly livePath: string;
  /** How long clients have to close their kept connections first. */
  readonly closingMs?: number;
  readonly pause: (ms: number) => Promise<void>;
}

/** Most kept connections are used again within this time. */
const usualClosingMs = 500;
/** Caddy gets the new configuration ready before it replaces the old one. */
const loadTimeoutMs = 60_000;

/**
 * Loads the text of a Caddyfile into Caddy. If it is rejected, the old configuration stays in force. Caddy ignores one that is the
 * same as its present one.
 *
 * Caddy replaces its servers with new ones, and Go's HTTP server then closes its kept connections, even if a request is just on
 * its way. So clients are asked before, with the header `Connection: close`, to close them: sites read the file `closing`.
 */
export async function loadCaddyfile(text: string, options: LoadOptions): Promise<LoadResult> {
  const { livePath, closingMs = usualClosingMs, pause } = options;
  writeClosing(livePath, "yes");
  try {
    await pause(closingMs);
    return await post(livePath, text);
  } finally {
    writeClosing(livePath, "no");
  }
}

/** Sites read this file on each request, so it must be there. @throws the system's error */
export function writeClosing(livePath: string, text: "yes" | "no"): void {
  replaceFile(join(livePath, "closing"), text, { mode: 0o644, owner: null });
}

async function post(livePath: string, text: string): Promise<LoadResult> {
  const target = { socketPath: join(livePath, adminSocket), path: "/load" };
  const headers = { host: "localhost", "content-type": "text/caddyfile" };
  const request = { method: "POST", headers, body: text, timeoutMs: loadTimeoutMs };
  const answer = await sendHttp(target, request).catch(() => null);
  if (answer === null) return { kind: "no answer" };
  return answer.status === 200 ? { kind: "loaded" } : { kind: "rejected", reason: reasonIn(answer.body) };
}

function reasonIn(body: Buffer): string {
  try {
    const { error }: { readonly error?: string } = JSON.parse(body.toString());
    return error ?? body.toString();
  } catch {
    return body.toString().trim();
  }
}
