import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import type { Delivery } from "./delivery.ts";

/** What came back, or why nothing did (`code` is the system's or OpenSSL's name of the error). */
export type Reply =
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

/** Answers of a proxy whose service is not up yet, and of a service that is about to go or come. */
const notYetStatuses = [502, 503, 504];
const notYetCodes = /^(?:ECONNREFUSED|ECONNRESET|EHOSTUNREACH|EPIPE|ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR)$/;

/**
 * Sends a delivery. Like a git host it does not follow redirects, and gives up after 10 s.
 *
 * @param waitMs how long it is tried again while nothing answers, or only a proxy does
 */
export async function post(url: URL, delivery: Delivery, waitMs: number): Promise<Reply> {
  const deadlineMs = performance.now() + waitMs;
  for (;;) {
    const reply = await postOnce(url, delivery);
    const isNotYet =
      reply.kind === "answer" ? notYetStatuses.includes(reply.status) : notYetCodes.test(reply.code);
    if (!isNotYet || performance.now() + retryPauseMs > deadlineMs) return reply;
    await sleep(retryPauseMs);
  }
}

function postOnce(url: URL, { headers, body }: Delivery): Promise<Reply> {
  return new Promise((resolve) => {
    const fail = (code: string, message: string) => resolve({ kind: "failure", code, message });
    const send = url.protocol === "https:" ? requestHttps : requestHttp;
    const options = { method: "POST", agent: false, headers: { ...headers, "content-length": body.length } };
    const sent = send(url, options, (answer) => {
      const chunks: Buffer[] = [];
      let length = 0;
      const finish = () => {
        const { statusCode: status = 0, headers: received } = answer;
        resolve({ kind: "answer", status, headers: received, body: Buffer.concat(chunks).toString() });
        sent.destroy();
      };
      answer.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length > mostAnswerBytes) finish();
      });
      answer.on("end", finish);
      answer.on("error", (error: NodeJS.ErrnoException) => fail(error.code ?? "", error.message));
    });
    sent.setTimeout(timeoutMs, () => {
      fail("ETIMEDOUT", `no answer within ${timeoutMs / 1_000} s`);
      sent.destroy();
    });
    sent.on("error", (error: NodeJS.ErrnoException) => fail(codeOf(error), error.message));
    sent.end(body);
  });
}

/** Where a name has several addresses, each has its own error. */
function codeOf(
  error: NodeJS.ErrnoException & { readonly errors?: readonly NodeJS.ErrnoException[] },
): string {
  return error.code ?? error.errors?.[0]?.code ?? error.name;
}
