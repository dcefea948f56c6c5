import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { adminSocket } from "../config/machine-part.ts";
import { type HttpAnswer, type HttpRequest, sendHttp } from "../platform/http.ts";
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
const answerTimeoutMs = 60_000;

/**
 * Loads the text of a Caddyfile into Caddy, unless that would change nothing. If it is rejected, the old configuration stays in
 * force.
 *
 * Caddy replaces its servers with new ones, and Go's HTTP server then closes its kept connections, even if a request is just on
 * its way. So clients are asked before, with the header `Connection: close`, to close them: sites read the file `closing`.
 */
export async function loadCaddyfile(text: string, options: LoadOptions): Promise<LoadResult> {
  const { livePath, closingMs = usualClosingMs, pause } = options;
  const caddyfile = { method: "POST", headers: { "content-type": "text/caddyfile" }, body: text };
  const adapted = await ask(livePath, "/adapt", caddyfile);
  if (adapted?.status !== 200) return resultOf(adapted);
  const present = await ask(livePath, "/config/");
  if (isSame(adapted, present)) return { kind: "loaded" };
  writeClosing(livePath, "yes");
  try {
    await pause(closingMs);
    return resultOf(await ask(livePath, "/load", caddyfile));
  } finally {
    writeClosing(livePath, "no");
  }
}

/** Sites read this file on each request, so it must be there. @throws the system's error */
export function writeClosing(livePath: string, text: "yes" | "no"): void {
  replaceFile(join(livePath, "closing"), text, { mode: 0o644, owner: null });
}

/** @returns null without an answer */
async function ask(livePath: string, path: string, request: HttpRequest = {}): Promise<HttpAnswer | null> {
  const target = { socketPath: join(livePath, adminSocket), path };
  const headers = { host: "localhost", ...request.headers };
  return sendHttp(target, { ...request, headers, timeoutMs: answerTimeoutMs }).catch(() => null);
}

/** Whether the Caddyfile that Caddy has translated is the configuration in force. The order of names may differ. */
function isSame(adapted: HttpAnswer, present: HttpAnswer | null): boolean {
  if (present?.status !== 200) return false;
  const { result }: { readonly result?: unknown } = JSON.parse(adapted.body.toString());
  return isDeepStrictEqual(result, JSON.parse(present.body.toString()));
}

function resultOf(answer: HttpAnswer | null): LoadResult {
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
