import { randomUUID } from "node:crypto";
import { type HttpProblemCode, type Problem, problems } from "#problems";

/** Why the connection is closed: the rest of the request is not worth reading, or cannot be read. */
type Closing = "refused" | "broken";

/** An answer ready to be sent: the body is text already. */
export interface Answer {
  readonly status: number;
  /** Names and values in turn, as Node writes them without looking at each. */
  readonly headers: readonly string[];
  readonly body: string;
  /** Set if the connection is closed after it. */
  readonly closing?: Closing | undefined;
}

/** Why a request is refused. */
export interface Refusal extends Problem<HttpProblemCode> {
  /** The field of the body that is wrong, as a slash path from its root. */
  readonly pointer?: string;
  /** Further headers, names and values in turn. */
  readonly headers?: readonly string[];
  readonly closing?: Closing;
  /** What only the log says. */
  readonly logReason?: string;
}

const common = ["Cache-Control", "no-store", "X-Content-Type-Options", "nosniff"] as const;
const jsonHeaders = ["Content-Type", "application/json; charset=utf-8", ...common];
const problemHeaders = ["Content-Type", "application/problem+json; charset=utf-8", ...common];

const challenge = ["WWW-Authenticate", 'HMAC-SHA256 realm="webhook"'];
const later = ["Retry-After", "30"];

/** Headers that go with a status: RFC 9110 requires a challenge with 401, and defines how to name what is accepted. */
const extraHeaders: Partial<Record<HttpProblemCode, readonly string[]>> = {
  signature_missing: challenge,
  signature_invalid: challenge,
  signature_unsupported: challenge,
  unsupported_media_type: ["Accept", "application/json"],
  unsupported_encoding: ["Accept-Encoding", "identity"],
  storage_unavailable: later,
  overloaded: later,
};

export function jsonAnswer(status: number, value: object, headers: readonly string[] = jsonHeaders): Answer {
  const body = JSON.stringify(value);
  return { status, headers: [...headers, "Content-Length", String(Buffer.byteLength(body))], body };
}

/** A refusal as RFC 9457 defines it. Git hosts show the body on the page of the delivery, so `detail` is the help text. */
export function problemAnswer({ code, detail, pointer, headers = [], closing }: Refusal): Answer {
  const { status, title } = problems[code];
  const instance = `urn:uuid:${randomUUID()}`;
  const body = { type: `urn:hotpush:problem:${code}`, title, status, detail, instance, code, pointer };
  const allHeaders = [...problemHeaders, ...(extraHeaders[code] ?? []), ...headers];
  return { ...jsonAnswer(status, body, allHeaders), closing };
}
