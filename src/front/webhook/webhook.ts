import type { IncomingMessage } from "node:http";
import type { Secrets } from "../../config/project.ts";
import type { SecretSlot } from "../../config/secret.ts";
import {
  type Push,
  type PushRecord,
  type StoredPush,
  type Would,
  withoutDryRun,
} from "../../deployments/push.ts";
import { type Answer, jsonAnswer, problemAnswer, type Refusal } from "../../platform/http-server/answer.ts";
import { type ArrivingBodies, discardAll, joinChunks, readBody } from "./body.ts";
import type { DeliveryLog, Sender } from "./delivery-log.ts";
import { type Host, identifyHost } from "./git-hosts.ts";
import { type Payload, readPayload } from "./payload.ts";
import { notAsked, notStored, signatureInvalid, unreadable, unverifiable } from "./refusals.ts";
import { checkDeliveryHead } from "./request-head.ts";
import {
  type IgnoreReason,
  ignoreDetails,
  type Selected,
  type SelectedPush,
  selectPush,
} from "./select-push.ts";
import {
  deliveryDigest,
  isFresh,
  makeKeys,
  type SlotKeys,
  startVerification,
  type VerifiableSignature,
} from "./verify-signature.ts";

/** What a webhook accepts, and who takes its pushes. */
export interface Webhook extends Selected {
  /** The name of its project, for the log; without it there is only one. */
  readonly project?: string;
  readonly secrets: Secrets;
  /** Resolves once the push is on disk. Rejects if it can't be promised: nothing was accepted then. */
  readonly record: (push: Push) => Promise<PushRecord | StoredPush>;
  /** Answers what recording a push would do, without doing it; null if nobody knows at the moment. */
  readonly dryRun: (push: Push) => Promise<Would | null>;
  /** Called for each delivery whose signature is right, with the secret that made it. */
  readonly onVerified?: (slot: SecretSlot, host: string, deliveryId: string | null) => void;
}

/** What all webhooks of a server share. */
export interface WebhookLimits {
  readonly bodyLimitBytes: number;
  readonly arriving: ArrivingBodies;
  readonly log: DeliveryLog;
}

/** Answers a request of the client at the address `from`; null if the client is gone. */
export type AnswerDelivery = (request: IncomingMessage, from: string | null) => Promise<Answer | null>;

interface WebhookState extends WebhookLimits {
  readonly webhook: Webhook;
  readonly keys: readonly SlotKeys[];
}

/** A delivery whose signature is right. */
interface SignedDelivery {
  readonly host: Host;
  readonly event: string;
  readonly slot: SecretSlot;
  readonly signature: VerifiableSignature;
  readonly body: Buffer;
  readonly sender: Sender;
}

/**
 * Turns a delivery into an answer, in the order that is cheapest and reveals least: head, signature claimed, body,
 * signature compared, and only then what the body says. Each check may rely on those before it.
 */
export function createWebhook(webhook: Webhook, limits: WebhookLimits): AnswerDelivery {
  const state: WebhookState = { ...limits, webhook, keys: makeKeys(webhook.secrets) };
  return async (request, from) => {
    const signed = await receiveSigned(state, request, from);
    const result = signed && "slot" in signed ? await answerSigned(state, signed) : signed;
    if (result === null || !("code" in result)) return result;
    limits.log.refused(result, sentTo(state, from));
    return problemAnswer(result);
  };
}

async function receiveSigned(
  state: WebhookState,
  request: IncomingMessage,
  from: string | null,
): Promise<SignedDelivery | Refusal | null> {
  const { keys, bodyLimitBytes, arriving } = state;
  const { headers } = request;
  const headFault = checkDeliveryHead(request, bodyLimitBytes);
  if (headFault) return headFault;
  const host = identifyHost(headers);
  const signature = host.claimSignature(headers);
  if (!("digests" in signature)) return unverifiable(signature);
  const verification = startVerification(signature, keys);
  const chunks = await readBody(request, bodyLimitBytes, arriving, verification.update);
  if (!Array.isArray(chunks)) return chunks;
  const slot = verification.verdict();
  if (slot === null || !isFresh(signature, Date.now())) {
    discardAll(chunks);
    return signatureInvalid(slot === null ? "mismatch" : "timestamp too old or too new");
  }
  const event = String(headers[host.eventHeader ?? ""] ?? "");
  const id = String(headers[host.deliveryHeader ?? ""] ?? "");
  const sender = { host: host.name, delivery: printableId.test(id) ? id : null, ...sentTo(state, from) };
  return { host, event, slot, signature, body: joinChunks(chunks), sender };
}

/** An id that is harmless to print: it is not signed. */
const printableId = /^[A-Za-z0-9-]{1,64}$/;

/** The address of the client, and the project that it sends to. */
function sentTo({ webhook: { project } }: WebhookState, from: string | null) {
  return project === undefined ? { from } : { from, project };
}

async function answerSigned(state: WebhookState, signed: SignedDelivery): Promise<Answer | Refusal> {
  const { webhook, log } = state;
  const { host, event, slot, sender } = signed;
  webhook.onVerified?.(slot, sender.host, sender.delivery);
  const payload = readPayload(signed.body);
  if ("code" in payload) return payload;
  const selection = selectPush(host.read(event, payload.object), webhook);
  switch (selection.kind) {
    case "unusable":
      return unreadable("invalid_payload", selection.detail, selection.field);
    case "pong":
      log.pong(sender);
      return pongAnswer;
    case "ignored":
      return answerIgnored(state, selection.reason, payload.isDryRun, signed);
    case "push":
      return await answerPush(state, pushOf(selection.push, payload, signed), payload.isDryRun, signed);
  }
}

/** Made once: most pushes are to branches that are not deployed. */
const pongAnswer = jsonAnswer(200, { status: "pong" });
const ignoredAnswers = Object.fromEntries(
  Object.entries(ignoreDetails).map(([reason, detail]) => [
    reason,
    jsonAnswer(200, { status: "ignored", reason, detail }),
  ]),
) as Readonly<Record<IgnoreReason, Answer>>;

function answerIgnored(
  { log }: WebhookState,
  reason: IgnoreReason,
  isDryRun: boolean,
  signed: SignedDelivery,
): Answer {
  if (isDryRun) return answerDryRun(log, { ignore: { reason, detail: ignoreDetails[reason] } }, signed);
  log.ignored(signed.sender, reason);
  return ignoredAnswers[reason];
}

function answerDryRun(log: DeliveryLog, would: Would, { slot, sender }: SignedDelivery): Answer {
  log.dryRun(sender, would);
  return jsonAnswer(200, { status: "dry-run", would, secret: slot });
}

function pushOf(push: SelectedPush, { isDryRun, text }: Payload, signed: SignedDelivery): Push {
  const { host, signature, body, sender } = signed;
  return {
    ...push,
    host: host.name,
    mentionsSkip: /\[skip deploy\]/i.test(text),
    digest: deliveryDigest(signature, isDryRun ? withoutDryRun(body) : body),
    deliveryId: sender.delivery,
  };
}

async function answerPush(
  { webhook, log }: WebhookState,
  push: Push,
  isDryRun: boolean,
  signed: SignedDelivery,
): Promise<Answer> {
  try {
    if (isDryRun) {
      const would = await webhook.dryRun(push);
      return would === null ? problemAnswer(notAsked) : answerDryRun(log, would, signed);
    }
    const recorded = await webhook.record(push);
    log.recorded(push, recorded, signed.slot, signed.sender);
    if (recorded.kind === "stored") return answerStored(push, recorded);
    const { kind, deployment, detail } = recorded;
    return jsonAnswer(kind === "accepted" ? 202 : 200, { status: kind, deployment, detail });
  } catch (error) {
    log.notRecorded(push, error, signed.sender);
    return problemAnswer(notStored);
  }
}

/** The process that deploys was not there, or busy: what it makes of the push will be in its record. */
function answerStored({ ref, commit }: Push, { delivery }: StoredPush): Answer {
  const detail = `The push is stored as delivery ${delivery}. It is deployed as soon as the process that deploys takes it.`;
  return jsonAnswer(202, { status: "accepted", delivery: { id: delivery, ref, commit }, detail });
}
