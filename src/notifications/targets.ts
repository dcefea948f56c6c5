import { createHmac } from "node:crypto";
import { hostname } from "node:os";
import { keyBytes, type Notify, type NotifyTarget } from "#config/project";
import type { Deployment } from "#deployments/deployment";
import type { HttpAnswer } from "#platform/http";
import { detailsOf, headlineOf, isFailure, type Message, messageJson } from "./message.ts";
import { failure, request, type SendOutcome, sendOutcomeOf } from "./outcome.ts";

/** How a kind of target takes a message. */
interface TargetKind {
  readonly format: (message: Message, target: NotifyTarget) => Formatted;
  /** What its answer says, if that is more than its status; null: no more. */
  readonly judge?: (answer: HttpAnswer) => SendOutcome | null;
}

interface Formatted {
  readonly body: object;
  /** Without it, the target's own address. */
  readonly url?: string;
  /** Beside the content type, for the text that is sent. */
  readonly headers?: (text: string) => Readonly<Record<string, string>>;
}

const kinds: Readonly<Record<NotifyTarget["kind"], TargetKind>> = {
  webhook: { format: formatWebhook },
  slack: { format: formatSlack },
  discord: { format: formatDiscord },
  ntfy: { format: formatNtfy },
  apprise: { format: formatApprise, judge: judgeApprise },
};

/** Sends a message in the form that the target expects. */
export async function sendToTarget(
  target: NotifyTarget,
  message: Message,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const { format, judge } = kinds[target.kind];
  const { body: content, url = target.url.reveal(), headers: more } = format(message, target);
  const body = JSON.stringify(content);
  const headers = { "content-type": "application/json", ...more?.(body) };
  try {
    const answer = await request(new URL(url), { method: "POST", body, signal, headers });
    return judge?.(answer) ?? sendOutcomeOf(answer);
  } catch (error) {
    return failure(error);
  }
}

/**
 * A message for a program, signed as Standard Webhooks say. A message that is sent again has the same id and content, so
 * that the program can leave it out.
 */
function formatWebhook(message: Message, { key }: NotifyTarget): Formatted {
  const { event, deployment } = message.report;
  const { project, id: number, attempts, state, createdAtMs } = deployment;
  const what = { started: event, ended: state, test: createdAtMs }[event];
  const id = `${hostname()}-${project}-${number}-${attempts}-${what}`.replaceAll(/[^\w-]/g, "-");
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const sign = (text: string) =>
    createHmac("sha256", keyBytes(key?.reveal() ?? ""))
      .update(`${id}.${timestamp}.${text}`)
      .digest("base64");
  return {
    body: messageJson(message),
    headers: (text) => ({
      "user-agent": "hotpush",
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": `v1,${sign(text)}`,
    }),
  };
}

/** For an incoming webhook of Slack, or of Mattermost, which takes the same. */
function formatSlack(message: Message): Formatted {
  const { lastLines, link } = message;
  // Without these three characters a commit's subject cannot mention a channel.
  const asText = (text: string) =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const lines = asText(lastLines.join("\n")).replaceAll("```", "'''");
  const text = [
    `*${asText(headlineOf(message))}*`,
    ...detailsOf(message).map(asText),
    ...(lines === "" ? [] : [`\`\`\`\n${lines}\n\`\`\``]),
    ...(link ? [`<${link}|Open the deployment>`] : []),
  ].join("\n");
  return { body: { text, unfurl_links: false } };
}

const red = 0xd1242f;
const green = 0x1a7f37;
const grey = 0x656d76;
/** Discord refuses longer ones. */
const longestTitle = 256;
const longestDescription = 4_096;

function formatDiscord(message: Message): Formatted {
  const asText = (text: string) => text.replaceAll(/[\\*_~`|<>[\]()#]/g, "\\$&");
  const text = detailsOf(message).map(asText).join("\n");
  const details = text.slice(0, longestDescription / 2);
  const room = longestDescription - details.length - "\n```\n\n```".length;
  const lines = message.lastLines.join("\n").replaceAll("```", "'''").slice(-room);
  const embed = {
    title: headlineOf(message).slice(0, longestTitle),
    description: lines === "" ? details : `${details}\n\`\`\`\n${lines}\n\`\`\``,
    color: { failure: red, success: green, info: grey }[toneOf(message)],
    ...(message.link ? { url: message.link } : {}),
  };
  // A commit's subject must mention nobody.
  return { body: { embeds: [embed], allowed_mentions: { parse: [] } } };
}

/** ntfy turns a longer message into an attachment. */
const longestMessageBytes = 4_096;
/** Of 1 to 5; 3 is the default. */
const urgent = 4;
const usual = 3;

/** ntfy takes JSON at its root; the topic is at the end of the target's URL. */
function formatNtfy(message: Message, { url, key }: NotifyTarget): Formatted {
  const { href } = new URL(url.reveal());
  const [, root = "", topic = ""] = /^(.*\/)([^/?#]*)$/.exec(href.replace(/\/+$/, "")) ?? [];
  const bytes = Buffer.from([...detailsOf(message), ...message.lastLines].join("\n"));
  return {
    body: {
      topic,
      title: headlineOf(message),
      // Half a character at the end becomes U+FFFD, which is left out.
      message: bytes.subarray(0, longestMessageBytes).toString().replace(/�+$/, ""),
      priority: isFailure(message) ? urgent : usual,
      tags: { failure: ["x"], success: ["white_check_mark"], info: [] }[toneOf(message)],
      ...(message.link ? { click: message.link } : {}),
    },
    url: root,
    ...(key ? { headers: () => ({ authorization: `Bearer ${key.reveal()}` }) } : {}),
  };
}

/** For an Apprise API, at the address of a configuration: `http://apprise:8000/notify/KEY`. */
function formatApprise(message: Message): Formatted {
  const lines = [...detailsOf(message), ...message.lastLines, ...(message.link ? [message.link] : [])];
  const body = lines.join("\n");
  return { body: { title: headlineOf(message), body, type: toneOf(message), format: "text" } };
}

function judgeApprise({ status }: HttpAnswer): SendOutcome | null {
  if (status === 204)
    return { kind: "failed", fault: "it has no configuration for this key (204)", waitMs: null };
  // Another attempt would reach those again who have it already.
  if (status === 424) return { kind: "refused", fault: "it could not reach all of its services (424)" };
  return null;
}

function toneOf(message: Message): "failure" | "success" | "info" {
  if (isFailure(message)) return "failure";
  return message.report.deployment.state === "succeeded" ? "success" : "info";
}

/** Whether a target took the test message. */
export interface TestResult {
  /** The target by its kind and host: its URL is secret. */
  readonly target: string;
  /** null: it took it. */
  readonly fault: string | null;
}

/** Sends a test message to each target of a project, once. */
export async function sendTestMessages(
  { targets }: Notify,
  project: string,
  signal: AbortSignal,
): Promise<readonly TestResult[]> {
  const nobody = { pusher: null, requestedBy: null, cancelledBy: null, author: null, subject: null };
  const nothing = { before: null, checkedOutCommit: null, repository: null, host: null, deliveryId: null };
  const reasons = { problem: null, skipReason: null, waitReason: null };
  const noResult = { ...reasons, supersededBy: null, exitCode: null, requests: null, liveAtMs: null };
  const nowMs = Date.now();
  const times = { createdAtMs: nowMs, startedAtMs: nowMs, finishedAtMs: nowMs };
  const what = { id: 0, project, trigger: "manual", ref: "refs/heads/main", commit: "0".repeat(40) } as const;
  const made = { ...what, state: "succeeded", attempts: 1, ...times } as const;
  const deployment: Deployment = { ...made, ...nobody, ...nothing, ...noResult };
  const report = { event: "test", deployment, isAfterFailure: false } as const;
  const message = { report, step: null, lastLines: [], link: null };
  return await Promise.all(
    targets.map(async (target) => {
      const outcome = await sendToTarget(target, message, signal);
      return { target: target.name, fault: outcome.kind === "delivered" ? null : outcome.fault };
    }),
  );
}
