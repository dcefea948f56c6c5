import { isUtf8 } from "node:buffer";
import { isJsonObject, type JsonObject, readDryRun } from "../../deployments/push.ts";
import type { Refusal } from "../../platform/http-server/answer.ts";
import { unreadable } from "./refusals.ts";

/** The body of a delivery whose signature is right. */
export interface Payload {
  readonly object: JsonObject;
  readonly text: string;
  readonly isDryRun: boolean;
}

/** Reads a signed body as JSON. @returns why it is refused, if it is none */
export function readPayload(body: Buffer): Payload | Refusal {
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
