import type { IncomingMessage } from "node:http";
import type { SecretSlot } from "../config/secret.ts";
import type { Admission } from "./admission.ts";
import { type Answer, problemAnswer } from "./answer.ts";
import { readBody } from "./body.ts";
import { type DeliveryLog, deliveryIdOf } from "./delivery-log.ts";
import type { Host, SignatureClaim } from "./hosts/host.ts";
import { identifyHost } from "./hosts/identify.ts";
import { type DeliveryOptions, readDelivery } from "./read-delivery.ts";
import { checkDeliveryHead, declaredBytes, tooLarge } from "./request-head.ts";
import { isFresh, type Keys, startVerification, type VerifiableSignature } from "./verify.ts";

export interface WebhookOptions extends DeliveryOptions {
  readonly keys: Keys;
  readonly bodyLimitBytes: number;
  readonly admission: Admission;
  /** Told of each delivery whose signature is right: which secret made it, and whose it is. */
  readonly onVerified?: (slot: SecretSlot, host: string, deliveryId: string | null) => void;
}

/** An answer to send, closing the connection where the rest of the request is not worth reading; or nobody to answer. */
export type Outcome =
  | { readonly kind: "answer"; readonly answer: Answer; readonly isClosing: boolean }
  /** Made to give way to others: nothing more of it is read. */
  | { readonly kind: "dropped"; readonly answer: Answer }
  | { readonly kind: "gone" };

/**
 * Turns a delivery into an answer, in the order that is cheapest and gives least away: head, signature claimed, body,
 * signature compared, and only then what the body says. What follows a check may rely on it.
 */
export function createWebhook(options: WebhookOptions) {
  return async (request: IncomingMessage): Promise<Outcome> => {
    const headFault = checkDeliveryHead(request, options.bodyLimitBytes);
    if (headFault) {
      options.log.refused(headFault.problem.code, request);
      return { kind: "answer", answer: problemAnswer(headFault.problem), isClosing: headFault.isClosing };
    }
    const host = identifyHost(request.headers);
    const claim = host.claimSignature(request.headers);
    if (claim.kind !== "body" && claim.kind !== "standard-webhooks") {
      return answered(refuseClaim(claim, options.log, request));
    }
    return await receiveSigned(request, host, claim, options);
  };
}

async function receiveSigned(
  request: IncomingMessage,
  host: Host,
  signature: VerifiableSignature,
  options: WebhookOptions,
): Promise<Outcome> {
  const verification = startVerification(signature, options.keys);
  const result = await readBody(request, {
    declaredBytes: declaredBytes(request),
    limitBytes: options.bodyLimitBytes,
    admission: options.admission,
    onChunk: verification.update,
  });
  if (result.kind === "aborted") return { kind: "gone" };
  if (result.kind === "too-large") {
    options.log.refused("payload_too_large", request);
    return {
      kind: "answer",
      answer: problemAnswer(tooLarge(options.bodyLimitBytes).problem),
      isClosing: true,
    };
  }
  if (result.kind === "evicted") {
    options.log.refused("overloaded", request);
    const detail =
      "Too many unfinished bodies were arriving at once, and this one arrived too slowly. Send it again.";
    return { kind: "dropped", answer: problemAnswer({ code: "overloaded", detail }) };
  }
  const slot = verification.verdict();
  if (slot === null || !isFresh(signature, Date.now())) {
    result.body.discard();
    options.log.refused(
      "signature_invalid",
      request,
      slot === null ? "mismatch" : "timestamp too old or too new",
    );
    return answered(signatureInvalid());
  }
  options.onVerified?.(slot, host.name, deliveryIdOf(host, request));
  const delivered = { request, host, slot, signature, body: result.body.join() };
  return answered(await readDelivery(delivered, options));
}

function refuseClaim(
  claim: Exclude<SignatureClaim, VerifiableSignature>,
  log: DeliveryLog,
  request: IncomingMessage,
): Answer {
  switch (claim.kind) {
    case "missing":
      log.refused("signature_missing", request);
      return problemAnswer({
        code: "signature_missing",
        detail:
          "The request has no HMAC-SHA256 signature. Set the same secret in the webhook's settings at the git host as in WEBHOOK_SECRET.",
      });
    case "malformed":
      log.refused("signature_invalid", request, claim.reason);
      return signatureInvalid();
    case "unsupported":
      log.refused("signature_unsupported", request);
      return problemAnswer({ code: "signature_unsupported", detail: claim.help });
  }
}

function signatureInvalid(): Answer {
  const detail =
    "The signature is not one made with this service's secret. Compare the secret in the webhook's settings with WEBHOOK_SECRET.";
  return problemAnswer({ code: "signature_invalid", detail });
}

function answered(answer: Answer): Outcome {
  return { kind: "answer", answer, isClosing: false };
}
