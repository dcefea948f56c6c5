import type { ServerResponse } from "node:http";

/** What is said to a command: one JSON object, or a stream that goes on. */
export type Reply =
  | { readonly kind: "json"; readonly status: number; readonly value: object }
  | { readonly kind: "stream"; readonly type: string; readonly write: (response: ServerResponse) => void };

export function json(value: object, status = 200): Reply {
  return { kind: "json", status, value };
}

/** Refuses in words that are for the person at the terminal: subject, number, next step. */
export function refusal(status: 400 | 404 | 405 | 409 | 413 | 500 | 503, detail: string): Reply {
  return json({ detail }, status);
}
