import { createHmac } from "node:crypto";
import { webhookUrlOf } from "../../config/values.ts";
import { type HttpRequest, sendHttp } from "../../platform/http.ts";

/** What answers at the service's port on this machine. `acceptsSecret` is null if there is no secret to try. */
export type ServiceAnswer =
  | { readonly kind: "hotpush"; readonly acceptsSecret: boolean | null; readonly url: string }
  | { readonly kind: "another" }
  | { readonly kind: "nothing" };

/** Asks at the service's port whether Hotpush is there, and whether it has this secret. */
export async function probeService(
  { host, port }: { readonly host: string; readonly port: number },
  secret: string | null,
  project: string | null,
): Promise<ServiceAnswer> {
  const url = `http://${reachable(host)}:${port}`;
  // Hotpush refuses a GET at this path with a problem of its own.
  const { href } = webhookUrlOf(new URL(`${url}/webhook`), project);
  const reply = await (secret === null ? ask(href, {}) : pingWebhook(href, secret));
  if (reply.kind === "none") return { kind: isNobody(reply) ? "nothing" : "another" };
  if (!reply.isPong && reply.code === null) return { kind: "another" };
  return { kind: "hotpush", acceptsSecret: secret === null ? null : reply.isPong, url };
}

/** An address of a service that listens on `host`. */
function reachable(host: string): string {
  if (host === "0.0.0.0" || host === "localhost") return "127.0.0.1";
  return host.includes(":") ? `[${host === "::" ? "::1" : host}]` : host;
}

function isNobody({ code }: NoReply): boolean {
  return ["ECONNREFUSED", "EHOSTUNREACH", "EADDRNOTAVAIL", "ENETUNREACH"].includes(code);
}

/** What answers at a webhook's address. */
export type WebhookReply =
  | {
      readonly kind: "answer";
      readonly status: number;
      /** The code of a problem of Hotpush; null in every other answer. */
      readonly code: string | null;
      readonly isPong: boolean;
      readonly location: string | null;
    }
  | NoReply;

/** Why there is no answer: the code of the system or of OpenSSL, and its text. */
export interface NoReply {
  readonly kind: "none";
  readonly code: string;
  readonly text: string;
}

const answerTimeoutMs = 5_000;
const longestAnswerBytes = 64 * 1024;

/**
 * Sends a signed ping, as a git host does when its form is saved: Hotpush answers `pong` and records nothing.
 *
 * @param url the address that the git host has, `…/webhook`
 * @param paddingBytes makes the body as large as that of a large push
 */
export function pingWebhook(url: string, secret: string, paddingBytes = 0): Promise<WebhookReply> {
  const body = JSON.stringify({ zen: "hotpush doctor", padding: " ".repeat(paddingBytes) });
  const headers = {
    "content-type": "application/json",
    "x-github-event": "ping",
    "x-github-delivery": "hotpush-doctor",
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
  };
  return ask(url, { method: "POST", body, headers });
}

async function ask(url: string, request: HttpRequest): Promise<WebhookReply> {
  try {
    const limited = { ...request, timeoutMs: answerTimeoutMs };
    const { status, headers, body } = await sendHttp(new URL(url), limited, longestAnswerBytes);
    return { kind: "answer", status, location: headers.location ?? null, ...readBody(body.toString()) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { kind: "none", code: code ?? "unknown", text: message || String(code) };
  }
}

function readBody(text: string): Pick<Extract<WebhookReply, { kind: "answer" }>, "code" | "isPong"> {
  try {
    const { type, status } = Object(JSON.parse(text));
    return { code: /^urn:hotpush:problem:(\w+)$/.exec(type)?.[1] ?? null, isPong: status === "pong" };
  } catch {
    return { code: null, isPong: false };
  }
}
