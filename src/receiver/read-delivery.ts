import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { SecretSlot } from "../config/secret.ts";
import type { HttpProblemCode } from "../problems.ts";
import { type Answer, jsonAnswer, problemAnswer } from "./answer.ts";
import { type DeliveryLog, deliveryIdOf } from "./delivery-log.ts";
import { readDryRun, type Would, withoutDryRun } from "./dry-run.ts";
import type { Host } from "./hosts/host.ts";
import { isJsonObject } from "./hosts/host.ts";
import type { Push, PushRecord } from "./push.ts";
import {
  type IgnoreReason,
  ignoreDetails,
  type Selected,
  type Selection,
  selectPush,
} from "./select-push.ts";
import { deliveryDigest, type VerifiableSignature } from "./verify.ts";

export interface DeliveryOptions extends Selected {
  readonly log: DeliveryLog;
  /** Resolves once the push is on disk. Rejects where it can't be promised: nothing was accepted then. */
  readonly record: (push: Push) => Promise<PushRecord>;
  /** Answers what recording a push would do, without doing it. */
  readonly dryRun: (push: Push) => Promise<Would>;
}

/** A delivery whose signature is right, and what its headers say. */
interface Delivered {
  readonly request: IncomingMessage;
  readonly host: Host;
  readonly slot: SecretSlot;
  readonly signature: VerifiableSignature;
  readonly body: Buffer;
}

const pong = jsonAnswer(200, { status: "pong" });
const ignoredAnswers = Object.fromEntries(
  Object.entries(ignoreDetails).map(([reason, detail]) => [
    reason,
    jsonAnswer(200, { status: "ignored", reason, detail }),
  ]),
) as Record<IgnoreReason, Answer>;

/** Reads a delivery whose sender is known to have the secret, and records the push that it tells of. */
export async function readDelivery(delivered: Delivered, options: DeliveryOptions): Promise<Answer> {
  const { request, host, body } = delivered;
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
  const kind = readDryRun(payload);
  if (kind === "malformed") return refuse("invalid_payload", malformedDryRun, { pointer: "/hotpush" });
  const selection = selectPush(host.read(eventOf(host, request), payload), options);
  if (selection.kind === "unusable") {
    return refuse("invalid_payload", selection.detail, { pointer: selection.field });
  }
  return kind === "dry-run"
    ? await dryRun(selection, delivered, options)
    : await act(selection, delivered, options);
}

const malformedDryRun =
  'The body is signed correctly but its member "hotpush" is not {"dryRun": true}, so it is taken neither for a dry run nor for a push.';

type Usable = Exclude<Selection, { kind: "unusable" }>;

async function act(selection: Usable, delivered: Delivered, options: DeliveryOptions): Promise<Answer> {
  const { host, request, slot, body } = delivered;
  switch (selection.kind) {
    case "pong":
      options.log.pong(host, request);
      return pong;
    case "ignored":
      options.log.ignored(host, selection.reason, request);
      return ignoredAnswers[selection.reason];
    case "push":
      return await recordPush(pushOf(selection, delivered, body), slot, request, options);
  }
}

/** Answers what would be done. If that fails, the push could not be stored either. */
async function dryRun(selection: Usable, delivered: Delivered, options: DeliveryOptions): Promise<Answer> {
  const { host, request, slot, body } = delivered;
  const from = options.log.clientOf(request);
  if (selection.kind === "pong") return await act(selection, delivered, options);
  if (selection.kind === "ignored") {
    const { reason } = selection;
    return answer({ ignore: { reason, detail: ignoreDetails[reason] } });
  }
  const push = pushOf(selection, delivered, withoutDryRun(body));
  try {
    return answer(await options.dryRun(push));
  } catch (error) {
    return notStored(push, error, from, options.log);
  }

  function answer(would: Would): Answer {
    options.log.dryRun(host, would, from);
    return jsonAnswer(200, { status: "dry-run", would, secret: slot });
  }
}

function pushOf(
  { change, repository, pusher }: Extract<Selection, { kind: "push" }>,
  { host, request, signature }: Delivered,
  body: Buffer,
): Push {
  const digest = deliveryDigest(signature, body);
  return { ...change, host: host.name, repository, pusher, digest, deliveryId: deliveryIdOf(host, request) };
}

async function recordPush(
  push: Push,
  slot: SecretSlot,
  request: IncomingMessage,
  { record, log }: DeliveryOptions,
): Promise<Answer> {
  const from = log.clientOf(request);
  try {
    const recorded = await record(push);
    log.recorded(push, slot, recorded, from);
    const { deployment } = recorded;
    if (recorded.kind === "accepted") return jsonAnswer(202, { status: "accepted", deployment });
    return jsonAnswer(200, { status: "duplicate", deployment, detail: recorded.detail });
  } catch (error) {
    return notStored(push, error, from, log);
  }
}

function notStored(push: Push, error: unknown, from: string | null, log: DeliveryLog): Answer {
  log.notRecorded(push, error, from);
  const detail =
    "The push could not be written to disk, so it is not promised. Its server's log says why; redeliver it once that is mended.";
  return problemAnswer({ code: "storage_unavailable", detail });
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
