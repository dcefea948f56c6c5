import type { Right } from "../access/visitor.ts";

/** What a request to `run` asks for, apart from who asks. */
export interface Call {
  /** Such as `POST /deployments/{id}/cancel`. */
  readonly key: string;
  /** The path as it was asked for, without its query. */
  readonly path: string;
  /** The number in the path, or null for `latest`. */
  readonly id: number | null;
  readonly query: URLSearchParams;
}

/** Reads any method and any target of a request. It never throws. */
export function readCall(method = "", target = ""): Call {
  const [path = ""] = target.split("?", 1);
  const query = new URLSearchParams(target.slice(path.length + 1));
  const [, word] = /^\/deployments\/(\d{1,15}|latest)(?=\/|$)/.exec(path) ?? [];
  const pattern = word === undefined ? path : path.replace(word, "{id}");
  const id = word === undefined || word === "latest" ? null : Number(word);
  return { key: `${method} ${pattern}`, path, id, query };
}

/** The calls of a visitor about projects, with the right that each needs. Only the operator's socket has others. */
export const visitorCalls: ReadonlyMap<string, Right> = new Map([
  ["GET /projects", "read"],
  ["GET /deployments", "read"],
  ["GET /deployments/{id}", "read"],
  ["GET /deployments/{id}/log", "read"],
  ["GET /deployments/{id}/log/page", "read"],
  ["GET /deployments/{id}/events", "read"],
  ["GET /doctor", "read"],
  ["GET /metrics", "read"],
  ["GET /status", "read"],
  ["POST /deployments", "deploy"],
  ["POST /deployments/{id}/cancel", "deploy"],
  ["POST /rollback", "deploy"],
  ["POST /pause", "deploy"],
  ["POST /resume", "deploy"],
]);
