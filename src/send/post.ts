import { setTimeout as sleep } from "node:timers/promises";
import { sendHttp } from "../platform/http-client.ts";
import type { Delivery } from "./delivery.ts";

/** The answer, or why there was none (`code` is the system's or OpenSSL's name of the error). */
export type DeliveryReply =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers: Readonly<Record<string, string | string[] | undefined>>;
      readonly body: string;
    }
  | { readonly kind: "failure"; readonly code: string; readonly message: string };

/** The time that a git host waits for an answer. */
const timeoutMs = 10_000;
const mostAnswerBytes = 64 * 1024;
const retryPauseMs = 500;

/** Answers of a proxy whose service is not up yet, and of a service that starts or stops. */
const notYetStatuses = [502, 503, 504];
const notYetCodes = /^(?:ECONNREFUSED|ECONNRESET|EHOSTUNREACH|EPIPE|ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR)$/;

/**
 * Sends a delivery. Like a git host it does not follow redirects, and gives up after 10 s.
 *
 * @param waitMs how long to retry while nothing answers, or only a proxy does
 */
export async function post(url: URL, delivery: Delivery, waitMs: number): Promise<DeliveryReply> {
  const deadlineMs = performance.now() + waitMs;
  for (;;) {
    const reply = await postOnce(url, delivery);
    const isNotYet =
      reply.kind === "answer" ? notYetStatuses.includes(reply.status) : notYetCodes.test(reply.code);
    if (!isNotYet || performance.now() + retryPauseMs > deadlineMs) return reply;
    await sleep(retryPauseMs);
  }
}

async function postOnce(url: URL, { headers, body }: Delivery): Promise<DeliveryReply> {
  try {
    const request = { method: "POST", headers, body, timeoutMs };
    const answer = await sendHttp(url, request, mostAnswerBytes);
    return { kind: "answer", ...answer, body: answer.body.toString() };
  } catch (error) {
    const { code, name, message } = error as NodeJS.ErrnoException;
    return { kind: "failure", code: code ?? name, message };
  }
}
