import type { NotifyTarget } from "../../config/notify-file.ts";
import { detailsOf, headlineOf, isFailure, type Message } from "../message.ts";
import { failure, request, type SendOutcome, sendOutcomeOf } from "../outcome.ts";

/** Sends a message to an Apprise API, at the address of a configuration: `http://apprise:8000/notify/KEY`. */
export async function sendApprise(
  { url }: NotifyTarget,
  message: Message,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const type = isFailure(message)
    ? "failure"
    : message.report.deployment.state === "succeeded"
      ? "success"
      : "info";
  const lines = [...detailsOf(message), ...message.lastLines, ...(message.link ? [message.link] : [])];
  const body = JSON.stringify({ title: headlineOf(message), body: lines.join("\n"), type, format: "text" });
  const headers = { "content-type": "application/json" };
  try {
    return judge(await request(new URL(url.reveal()), { method: "POST", headers, body, signal }));
  } catch (error) {
    return failure(error);
  }
}

function judge(answer: Parameters<typeof sendOutcomeOf>[0]): SendOutcome {
  const { status } = answer;
  if (status === 204)
    return { kind: "failed", fault: "it has no configuration for this key (204)", waitMs: null };
  // Another attempt would reach those again who have it already.
  if (status === 424) return { kind: "refused", fault: "it could not reach all of its services (424)" };
  return sendOutcomeOf(answer);
}
