import type { ServerResponse } from "node:http";
import type { Visitor } from "#access/visitors";
import type { Turns } from "#deployments/queue";
import type { ProjectRegistry, Shared } from "#projects/project";
import type { Inbox } from "#projects/take-pushes";

/** What the handlers of calls need of the service. */
export interface ServiceContext extends Pick<Shared, "service" | "store" | "events" | "log"> {
  /** What is wrong with the service, or null. */
  readonly findFault: () => string | null;
  /** What is wrong with the server; nothing without one. */
  readonly findServerFaults: () => readonly string[];
  /** The webhook's; null: it does not listen in this process. */
  readonly address: () => { readonly address: string; readonly port: number } | null;
  readonly startedAtMs: number;
  /** Who may run a deployment, of all projects. */
  readonly turns: Pick<Turns, "holdAll" | "holds">;
  readonly inbox: Inbox;
  /** Whether `front` is another process. */
  readonly isSplit: boolean;
  readonly projects: ProjectRegistry;
}

/** Who calls. */
export interface Caller {
  /** null: somebody with the operator's socket, `front` itself, or somebody who signs in. */
  readonly visitor: Visitor | null;
  /** The name for the record: proven by a credential, or as a command reports it. */
  readonly name: string | null;
  /** Where the visitor is, as the page reports it. */
  readonly address: string | null;
  readonly agent: string | null;
}

/** An answer that is text, or goes on. Its media type is in the call's row. */
export interface Stream {
  /** Rejects for a fault, which is logged and ends the connection. What goes on after it resolves handles its own. */
  readonly write: (response: ServerResponse) => void | Promise<void>;
}
