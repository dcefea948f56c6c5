import type { NotifyTarget } from "../../config/notify-file.ts";
import type { Message } from "../message.ts";
import type { SendOutcome } from "../outcome.ts";
import { sendApprise } from "./apprise.ts";
import { sendDiscord } from "./discord.ts";
import { sendNtfy } from "./ntfy.ts";
import { sendSlack } from "./slack.ts";
import { sendWebhook } from "./webhook.ts";

type SendMessage = (target: NotifyTarget, message: Message, signal: AbortSignal) => Promise<SendOutcome>;

const senders: Readonly<Record<NotifyTarget["kind"], SendMessage>> = {
  webhook: sendWebhook,
  slack: sendSlack,
  discord: sendDiscord,
  ntfy: sendNtfy,
  apprise: sendApprise,
};

/** Sends a message in the form that the target expects. */
export const sendToTarget: SendMessage = (target, message, signal) =>
  senders[target.kind](target, message, signal);
