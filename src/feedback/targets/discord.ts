import type { NotifyTarget } from "../../config/notify-file.ts";
import { detailsOf, headlineOf, isFailure, type Message } from "../message.ts";
import { post, type SendOutcome } from "../outcome.ts";

const [red, green, grey] = [0xd1242f, 0x1a7f37, 0x656d76];
/** Discord refuses longer ones. */
const [longestTitle, longestDescription] = [256, 4_096];

/** Posts a message to a webhook of Discord. */
export async function sendDiscord(
  { url }: NotifyTarget,
  message: Message,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const embed = {
    title: headlineOf(message).slice(0, longestTitle),
    description: descriptionOf(message),
    color: colourOf(message),
    ...(message.link ? { url: message.link } : {}),
  };
  // A commit's subject must mention nobody.
  const body = JSON.stringify({ embeds: [embed], allowed_mentions: { parse: [] } });
  return await post(new URL(url.reveal()), { headers: { "content-type": "application/json" }, body, signal });
}

function colourOf(message: Message): number {
  if (isFailure(message)) return red;
  return message.report.deployment.state === "succeeded" ? green : grey;
}

function descriptionOf(message: Message): string {
  const details = detailsOf(message)
    .map(escaped)
    .join("\n")
    .slice(0, longestDescription / 2);
  const room = longestDescription - details.length - "\n```\n\n```".length;
  const lines = message.lastLines.join("\n").replaceAll("```", "'''").slice(-room);
  return lines === "" ? details : `${details}\n\`\`\`\n${lines}\n\`\`\``;
}

function escaped(text: string): string {
  return text.replaceAll(/[\\*_~`|<>[\]()#]/g, "\\$&");
}
