import type { ServerResponse } from "node:http";
import type { BlockList } from "node:net";
import type { Notify } from "../config/project.ts";
import type { CatchUpReport } from "../deployments/catch-up.ts";

import type { EventBus } from "../deployments/events.ts";
import type { MainRef } from "../deployments/push.ts";
import type { Queue, Turns } from "../deployments/queue.ts";
import type { SecretUses } from "../deployments/secret-uses.ts";
import type { Log } from "../log.ts";
import type { RemoteHead } from "../platform/git.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { printable } from "../platform/terminal/printable.ts";
import type { ProjectRegistry } from "../projects/registry.ts";
import type { Taking } from "../projects/take-pushes.ts";
import type { Examiner } from "./examiner.ts";

/** What the routes need of the service, for one project. */
export interface ControlContext {
  readonly project: string;
  /** The project's view of the database. */
  readonly store: Store;
  readonly queue: Pick<Queue, "request" | "cancel" | "wake" | "findGuarded" | "goBack">;
  readonly events: EventBus;
  readonly secretUses: Pick<SecretUses, "read">;
  /** The branches that are deployed: both, or the one that BRANCH names. */
  readonly refs: readonly MainRef[];
  readonly catchUp: { readonly report: () => CatchUpReport };
  readonly readRemoteHead: (ref: string) => Promise<RemoteHead>;
  /** What is wrong with the service, or null. */
  readonly findFault: () => string | null;
  /** What is wrong with the server; nothing without one. */
  readonly findServerFaults: () => readonly string[];
  readonly statePath: string;
  /** The directory with the project's logs. */
  readonly logStatePath: string;
  /** The state directory of `hotpush rollout` in the project's scripts. */
  readonly rolloutStatePath: string;
  readonly repoPath: string;
  readonly notify: Notify;
  /** Whether the project's settings are there; if not, nothing is started. */
  readonly isServed: boolean;
  /** What is wrong with the project's settings, or null. */
  readonly fault: string | null;
  /** null: `front` is in this process. */
  readonly taking: Taking | null;
  /** The path of a directory on the host, which identifies a project in roll-outs; the same outside of a container. */
  readonly hostDirectory: (directory: string) => Promise<string>;
  /** The webhook's; null: it does not listen in this process. */
  readonly address: { readonly address: string; readonly port: number } | null;
  readonly startedAtMs: number;
  /** Who may run a deployment, of all projects. */
  readonly turns: Pick<Turns, "holdAll" | "holds">;
  /** null: only the operator's shell has what the doctor needs. */
  readonly examiner: Examiner | null;
  readonly log: Log;
}

/** What the contexts of projects are made from. */
export interface ControlSources
  extends Pick<
    ControlContext,
    | "events"
    | "findFault"
    | "findServerFaults"
    | "address"
    | "startedAtMs"
    | "turns"
    | "log"
    | "taking"
    | "examiner"
  > {
  /** Answers a call of `front`, which needs nobody's credential; null if it has no such call. */
  readonly answerFront: Taking["answer"];
  /** The whole database. */
  readonly store: Store;
  /** Where people reach the page; null: there is none. */
  readonly pageUrl: URL | null;
  /** Addresses from which the metrics may be read without a token. */
  readonly metricsNetworks: BlockList;
  /** Who may visit; opened when it is first asked for. */
  readonly access: () => Store;
  readonly statePath: string;
  readonly projects: ProjectRegistry;
}

export interface ControlRequest {
  /** The number in the path, or null for "the one that runs, else the last". */
  readonly id: number | null;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
}

/** One JSON object, or a stream that goes on. */
export type ControlReply =
  | { readonly kind: "json"; readonly status: number; readonly value: object }
  | {
      readonly kind: "stream";
      readonly type: string;
      /** Resolves when nothing that it does can fail any more but what has its own place for faults. */
      readonly write: (response: ServerResponse) => void | Promise<void>;
    };

export type Route = (
  context: ControlContext,
  request: ControlRequest,
) => ControlReply | Promise<ControlReply>;

/** A request about all projects. */
export type WholeRoute = (sources: ControlSources, request: ControlRequest) => ControlReply;

const longestName = 100;

/** The user that a command reports, printable and at most 100 characters; null if it names none. Nothing proves it. */
export function reportedName({ requestedBy }: ControlRequest["body"]): string | null {
  return typeof requestedBy === "string" ? printable(requestedBy, longestName).trim() || null : null;
}

export function jsonReply(value: object, status = 200): ControlReply {
  return { kind: "json", status, value };
}

/** A refusal that the person at the terminal reads: what is refused, why, and the next step. */
export function refusal(status: 400 | 401 | 403 | 404 | 409 | 422, detail: string): ControlReply {
  return jsonReply({ detail }, status);
}
