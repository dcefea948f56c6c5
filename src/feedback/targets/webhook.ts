import { createHmac } from "node:crypto";
import { hostname } from "node:os";
import { keyBytes, type NotifyTarget } from "../../config/notify-file.ts";
import type { Message } from "../message.ts";
import { messageJson } from "../message-json.ts";
import { post, type SendOutcome } from "../outcome.ts";

/**
 * Sends a message to a program, signed as Standard Webhooks say. A message that is sent again has the same id and
 * content, so that the program can leave it out.
 */
export async function sendWebhook(
  { url, key }: NotifyTarget,
  message: Message,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const id = messageId(message);
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const body = JSON.stringify(messageJson(message));
  const signature = createHmac("sha256", keyBytes(key?.reveal() ?? ""))
    .update(`${id}.${timestamp}.${body}`)
    .digest("base64");
  const headers = {
    "content-type": "application/json",
    "user-agent": "hotpush",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
  return await post(new URL(url.reveal()), { headers, body, signal });
}

/** The same for each attempt to deliver a report, and for no other report. */
function messageId({ report: { event, deployment } }: Message): string {
  const { project, id, attempts, state, createdAtMs } = deployment;
  const what = { started: event, ended: state, test: createdAtMs }[event];
  return `${hostname()}-${project}-${id}-${attempts}-${what}`.replaceAll(/[^\w-]/g, "-");
}
