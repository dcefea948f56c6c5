import type { Refusal } from "../../platform/http-server/answer.ts";
import type { HttpProblemCode } from "../../problems.ts";
import type { SignatureClaim, VerifiableSignature } from "./verify-signature.ts";

/** @param webhookPath what the paths of webhooks are, for a person */
export function pathUnknown(webhookPath: string): Refusal {
  const detail = `This service has two paths: POST ${webhookPath} and GET /health.`;
  return { code: "not_found", detail };
}

/** @param methods the ones that the path takes */
export function methodNotAllowed(methods: readonly string[]): Refusal {
  const allow = methods.join(", ");
  const detail = `This path takes ${allow} only.`;
  return { code: "method_not_allowed", detail, headers: ["Allow", allow] };
}

/** Why a delivery whose signature cannot be verified is refused. */
export function unverifiable(claim: Exclude<SignatureClaim, VerifiableSignature>): Refusal {
  if (claim.kind === "malformed") return signatureInvalid(claim.reason);
  if (claim.kind === "unsupported") return { code: "signature_unsupported", detail: claim.help };
  const detail =
    "The request has no HMAC-SHA256 signature. Set the same secret in the webhook's settings at the git host as in WEBHOOK_SECRET.";
  return { code: "signature_missing", detail };
}

/** The sender learns nothing more than that; the log has the reason. */
export function signatureInvalid(logReason: string): Refusal {
  const detail =
    "The signature is not one made with this service's secret. Compare the secret in the webhook's settings with WEBHOOK_SECRET.";
  return { code: "signature_invalid", detail, logReason };
}

/** Why a body with the right signature is refused. Its sender has the secret, so the log repeats what the answer says. */
export function unreadable(code: HttpProblemCode, detail: string, pointer?: string): Refusal {
  return { code, detail, logReason: detail, ...(pointer === undefined ? {} : { pointer }) };
}

/** Why a dry run is not answered. */
export const notAsked: Refusal = {
  code: "storage_unavailable",
  detail:
    "The process that deploys does not answer, so nobody knows what it would do. A push would be stored for it.",
};

/** Why a push is not accepted although nothing is wrong with it. */
export const notStored: Refusal = {
  code: "storage_unavailable",
  detail:
    "The push could not be written to disk, so it is not promised. Its server's log says why; redeliver it once that is fixed.",
};

/** Why a request is refused that caused a fault. */
