import type { NotifyTarget } from "../../config/notify-file.ts";
import { detailsOf, headlineOf, type Message } from "../message.ts";
import { post, type SendOutcome } from "../outcome.ts";

/** Posts a message to an incoming webhook of Slack, or of Mattermost, which takes the same. */
export async function sendSlack(
  { url }: NotifyTarget,
  message: Message,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const { lastLines, link } = message;
  const text = [
    `*${escaped(headlineOf(message))}*`,
    ...detailsOf(message).map(escaped),
    ...(lastLines.length > 0
      ? [`\`\`\`\n${escaped(lastLines.join("\n")).replaceAll("```", "'''")}\n\`\`\``]
      : []),
    ...(link ? [`<${link}|Open the deployment>`] : []),
  ].join("\n");
  const body = JSON.stringify({ text, unfurl_links: false });
  return await post(new URL(url.reveal()), { headers: { "content-type": "application/json" }, body, signal });
}

/** The three characters that control Slack's text: without them a commit's subject cannot mention a channel. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
