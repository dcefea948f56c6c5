import { type HttpAnswer, type HttpRequest, sendHttp } from "#platform/http";

/** The result of an attempt to send a report. Nothing in a fault is secret, or was sent by the other side. */
export type SendOutcome =
  | { readonly kind: "delivered" }
  /** Another attempt may succeed; not before `waitMs`, if the other side said so. */
  | { readonly kind: "failed"; readonly fault: string; readonly waitMs: number | null }
  /** The other side will never take it. */
  | { readonly kind: "refused"; readonly fault: string };

export const delivered: SendOutcome = { kind: "delivered" };

/** How long one request may take, and how much of an answer is read. */
const requestLimitMs = 10_000;
const longestAnswerBytes = 64 * 1024;

/** Sends one request that must not take long. Redirects are not followed. @throws as `sendHttp` */
export function request(
  url: URL,
  options: HttpRequest,
  longestBytes = longestAnswerBytes,
): Promise<HttpAnswer> {
  return sendHttp(url, { timeoutMs: requestLimitMs, ...options }, longestBytes);
}

/** What an error of the system says about an attempt. */
export function failure(error: unknown): Extract<SendOutcome, { readonly kind: "failed" }> {
  const { code } = error as NodeJS.ErrnoException;
  const fault =
    code === "ETIMEDOUT" ? "it took too long to answer" : `it cannot be reached (${code ?? "unknown error"})`;
  return { kind: "failed", fault, waitMs: null };
}

/** The statuses after which another attempt with the same content is pointless. */
const finalStatuses = [400, 410, 413, 422];

/** What the status of an answer says about an attempt. */
export function sendOutcomeOf({ status, headers }: Pick<HttpAnswer, "status" | "headers">): SendOutcome {
  if (status >= 200 && status < 300) return delivered;
  const fault = `it answered ${status}`;
  if (finalStatuses.includes(status)) return { kind: "refused", fault };
  if (status >= 300 && status < 400)
    return { kind: "failed", fault: `${fault}, a redirect, which is not followed`, waitMs: null };
  const seconds = Number(headers["retry-after"] ?? Number.NaN);
  return { kind: "failed", fault, waitMs: Number.isFinite(seconds) ? Math.max(0, seconds) * 1_000 : null };
}
