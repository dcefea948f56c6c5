import { createHmac } from "node:crypto";
import { sendHttp } from "../../platform/http-client.ts";

/** What answers at a webhook's address. */
export type Reply =
  | {
      readonly kind: "answer";
      readonly status: number;
      /** The code of a problem of Hotpush; null in every other answer. */
      readonly code: string | null;
      readonly isPong: boolean;
      readonly location: string | null;
      readonly date: string | null;
    }
  | { readonly kind: "none"; readonly code: string; readonly text: string };

const answerTimeoutMs = 5_000;
const longestAnswerBytes = 64 * 1024;

/**
 * Sends a signed ping, as a git host does after its form was saved: Hotpush answers `pong` and records nothing.
 *
 * @param url the address that the git host has, `…/webhook`
 * @param paddingBytes makes the body larger, as that of a large push
 */
export function ping(url: string, secret: string, paddingBytes = 0): Promise<Reply> {
  const body = JSON.stringify({ zen: "hotpush doctor", padding: " ".repeat(paddingBytes) });
  return ask(url, "POST", body, {
    "content-type": "application/json",
    "x-github-event": "ping",
    "x-github-delivery": "hotpush-doctor",
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
  });
}

/** Asks without a secret: Hotpush refuses a GET at this path with a problem of its own. */
export function look(url: string): Promise<Reply> {
  return ask(url, "GET", "", {});
}

/**
 * Sends one request.
 *
 * @param isTrusting takes a certificate that is not valid too, where nothing depends on who answers
 */
export async function ask(
  url: string,
  method: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  isTrusting = false,
): Promise<Reply> {
  const request = { method, body, headers, timeoutMs: answerTimeoutMs, acceptsAnyCertificate: isTrusting };
  try {
    const answer = await sendHttp(new URL(url), request, longestAnswerBytes);
    const { location = null, date = null } = answer.headers;
    return { ...read(answer.status, answer.body.toString()), location, date };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { kind: "none", code: code ?? "unknown", text: message || String(code) };
  }
}

function read(status: number, text: string) {
  const body = parse(text);
  const code = /^urn:hotpush:problem:(\w+)$/.exec(String(body.type ?? ""))?.[1] ?? null;
  return { kind: "answer" as const, status, code, isPong: body.status === "pong" };
}

function parse(text: string): { readonly type?: unknown; readonly status?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
