import type { NotifyTarget } from "../../config/notify-file.ts";
import { detailsOf, headlineOf, isFailure, type Message } from "../message.ts";
import { post, type SendOutcome } from "../outcome.ts";

/** ntfy turns a longer message into an attachment. */
const longestMessageBytes = 4_096;
/** Of 1 to 5; 3 is the default. */
const [urgent, usual] = [4, 3];

/** Publishes a message to the topic at the end of the target's URL. */
export async function sendNtfy(
  { url, key }: NotifyTarget,
  message: Message,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const { href } = new URL(url.reveal());
  const [, root = "", topic = ""] = /^(.*\/)([^/?#]*)$/.exec(href.replace(/\/+$/, "")) ?? [];
  const text = [...detailsOf(message), ...message.lastLines].join("\n");
  const body = JSON.stringify({
    ...{ topic, title: headlineOf(message), message: firstBytes(text, longestMessageBytes) },
    priority: isFailure(message) ? urgent : usual,
    tags: [isFailure(message) ? "x" : "white_check_mark"],
    ...(message.link ? { click: message.link } : {}),
  });
  const authorization = key ? { authorization: `Bearer ${key.reveal()}` } : {};
  const headers = { "content-type": "application/json", ...authorization };
  return await post(new URL(root), { headers, body, signal });
}

function firstBytes(text: string, most: number): string {
  // Half a character at the end becomes U+FFFD, which is left out.
  return Buffer.from(text).subarray(0, most).toString().replace(/�+$/, "");
}
