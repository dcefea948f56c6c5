import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Secrets } from "#config/project";
import type { SecretSlot } from "#config/secret";
import {
  isJsonObject,
  type JsonObject,
  type Push,
  type PushRecord,
  readDryRun,
  type StoredPush,
  type Would,
  withoutDryRun,
} from "#deployments/push";
import { type Answer, jsonAnswer, problemAnswer, type Refusal } from "#platform/http-server/answer";
import { declaredBytes } from "#platform/http-server/request-head";
import type { HttpProblemCode } from "#problems";
import { type ArrivingBodies, discardAll, joinChunks, readBody, tooLarge } from "./body.ts";
import type { DeliveryLog, Sender } from "./delivery-log.ts";
import { type Host, identifyHost } from "./git-hosts.ts";
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
  type SignatureClaim,
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

/** Checks of a delivery's headers that need no secret: declared length, then content type, then encoding. */
function checkDeliveryHead(request: IncomingMessage, limitBytes: number): Refusal | null {
  if (declaredBytes(request) > limitBytes) return tooLarge(limitBytes);
  const { "content-type": contentType = "", "content-encoding": encoding } = request.headers;
  if (!/^application\/json\s*(?:;|$)/i.test(contentType)) {
    const detail =
      "This service reads JSON. In the webhook's settings at the git host, set the content type to application/json.";
    return { code: "unsupported_media_type", detail };
  }
  if (encoding !== undefined && encoding !== "identity") {
    const detail =
      "The body is compressed, which no git host does by itself: switch off request compression in the proxy before this service.";
    return { code: "unsupported_encoding", detail };
  }
  return null;
}

/** The body of a delivery whose signature is right. */
interface Payload {
  readonly object: JsonObject;
  readonly text: string;
  readonly isDryRun: boolean;
}

/** Reads a signed body as JSON. @returns why it is refused, if it is none */
function readPayload(body: Buffer): Payload | Refusal {
  if (!isUtf8(body)) return unreadable("invalid_encoding", "The body is signed correctly but is not UTF-8.");
  const text = body.toString("utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return unreadable("invalid_json", "The body is signed correctly but is not JSON.");
  }
  if (!isJsonObject(value)) return unreadable("invalid_payload", "The body is JSON but not an object.", "");
  const kind = readDryRun(value);
  if (kind !== "malformed") return { object: value, text, isDryRun: kind === "dry-run" };
  const detail =
    'The body is signed correctly but its member "hotpush" is not {"dryRun": true}, so it is taken neither for a dry run nor for a push.';
  return unreadable("invalid_payload", detail, "/hotpush");
}

/** Why a delivery whose signature cannot be verified is refused. */
function unverifiable(claim: Exclude<SignatureClaim, VerifiableSignature>): Refusal {
  if (claim.kind === "malformed") return signatureInvalid(claim.reason);
  if (claim.kind === "unsupported") return { code: "signature_unsupported", detail: claim.help };
  const detail =
    "The request has no HMAC-SHA256 signature. Set the same secret in the webhook's settings at the git host as in WEBHOOK_SECRET.";
  return { code: "signature_missing", detail };
}

/** The sender learns nothing more than that; the log has the reason. */
function signatureInvalid(logReason: string): Refusal {
  const detail =
    "The signature is not one made with this service's secret. Compare the secret in the webhook's settings with WEBHOOK_SECRET.";
  return { code: "signature_invalid", detail, logReason };
}

/** Why a body with the right signature is refused. Its sender has the secret, so the log repeats what the answer says. */
function unreadable(code: HttpProblemCode, detail: string, pointer?: string): Refusal {
  return { code, detail, logReason: detail, ...(pointer === undefined ? {} : { pointer }) };
}

/** Why a dry run is not answered. */
const notAsked: Refusal = {
  code: "storage_unavailable",
  detail:
    "The process that deploys does not answer, so nobody knows what it would do. A push would be stored for it.",
};

/** Why a push is not accepted although nothing is wrong with it. */
const notStored: Refusal = {
  code: "storage_unavailable",
  detail:
    "The push could not be written to disk, so it is not promised. Its server's log says why; redeliver it once that is fixed.",
};
