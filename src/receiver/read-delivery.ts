import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { HttpProblemCode } from "../problems.ts";
import { type Answer, jsonAnswer, problemAnswer } from "./answer.ts";
import { type DeliveryLog, deliveryIdOf } from "./delivery-log.ts";
import type { Host } from "./hosts/host.ts";
import { isJsonObject } from "./hosts/payload.ts";
import type { Push } from "./push.ts";
import { type IgnoreReason, ignoreDetails, selectPush } from "./select-push.ts";
import { deliveryDigest, type SecretSlot, type VerifiableSignature } from "./verify.ts";

/** What a deployment looks like to the sender of a push. */
export interface RecordedDeployment {
  readonly id: number;
  readonly ref: string;
  readonly commit: string;
  readonly state: string;
}

export type Recorded =
  | { readonly kind: "accepted"; readonly deployment: RecordedDeployment }
  /** The same delivery was recorded before; `detail` says what a person can do who wants to deploy it again. */
  | { readonly kind: "duplicate"; readonly deployment: RecordedDeployment; readonly detail: string };

export interface DeliveryOptions {
  /** Only pushes of this repository count; null: of any. */
  readonly repository: string | null;
  readonly log: DeliveryLog;
  /** Resolves once the push is on disk. Rejects where it can't be promised: nothing was accepted then. */
  readonly record: (push: Push) => Promise<Recorded>;
}

const pong = jsonAnswer(200, { status: "pong" });
const ignoredAnswers = Object.fromEntries(
  Object.entries(ignoreDetails).map(([reason, detail]) => [
    reason,
    jsonAnswer(200, { status: "ignored", reason, detail }),
  ]),
) as Record<IgnoreReason, Answer>;

/** Reads a delivery whose sender is known to have the secret, and records the push that it tells of. */
export async function readDelivery(
  request: IncomingMessage,
  host: Host,
  slot: SecretSlot,
  signature: VerifiableSignature,
  body: Buffer,
  options: DeliveryOptions,
): Promise<Answer> {
  const refuse = (code: HttpProblemCode, detail: string, members?: Record<string, string>) => {
    options.log.refused(code, request, detail);
    return problemAnswer({ code, detail }, members);
  };
  if (!isUtf8(body)) return refuse("invalid_encoding", "The body is signed correctly but is not UTF-8.");
  const payload = parsed(body);
  if (payload === undefined) return refuse("invalid_json", "The body is signed correctly but is not JSON.");
  if (!isJsonObject(payload)) {
    return refuse("invalid_payload", "The body is JSON but not an object.", { pointer: "" });
  }
  const reading = host.read(eventOf(host, request), payload);
  const selection = selectPush(reading, options.repository);
  switch (selection.kind) {
    case "pong":
      options.log.pong(host, request);
      return pong;
    case "ignored":
      options.log.ignored(host, selection.reason, request);
      return ignoredAnswers[selection.reason];
    case "unusable":
      return refuse("invalid_payload", selection.detail, { pointer: selection.field });
    case "push":
      break;
  }
  const push: Push = {
    ...selection.change,
    host: host.name,
    repository: selection.repository,
    digest: deliveryDigest(signature, body),
    deliveryId: deliveryIdOf(host, request),
  };
  return await recordPush(push, slot, request, options);
}

async function recordPush(
  push: Push,
  slot: SecretSlot,
  request: IncomingMessage,
  { record, log }: DeliveryOptions,
): Promise<Answer> {
  try {
    const recorded = await record(push);
    log.recorded(push, slot, recorded);
    const { deployment } = recorded;
    if (recorded.kind === "accepted") return jsonAnswer(202, { status: "accepted", deployment });
    return jsonAnswer(200, { status: "duplicate", deployment, detail: recorded.detail });
  } catch (error) {
    log.notRecorded(push, error, request);
    const detail =
      "The push could not be written to disk, so it is not promised. Its server's log says why; redeliver it once that is mended.";
    return problemAnswer({ code: "storage_unavailable", detail });
  }
}

function eventOf({ eventHeader }: Host, request: IncomingMessage): string {
  const event = eventHeader === null ? undefined : request.headers[eventHeader];
  return typeof event === "string" ? event : "";
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8")) as unknown;
  } catch {
    return undefined;
  }
}
