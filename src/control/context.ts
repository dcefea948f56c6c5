import type { CatchUpReport } from "../deployments/catch-up.ts";
import type { RemoteHead } from "../deployments/deployment.ts";
import type { EventBus } from "../deployments/event-bus.ts";
import type { Queue } from "../deployments/queue.ts";
import type { SecretUses } from "../deployments/secret-uses.ts";
import type { Store } from "../deployments/store.ts";
import type { Log } from "../log.ts";
import type { MainRef } from "../receiver/push.ts";

/** What the operator's door needs of the service behind it. */
export interface ControlContext {
  readonly store: Store;
  readonly queue: Pick<Queue, "wake" | "cancel">;
  readonly feed: EventBus;
  readonly secretUses: Pick<SecretUses, "read">;
  /** The branches that are deployed: both, or the one that BRANCH names. */
  readonly refs: readonly MainRef[];
  readonly catchUp: { readonly report: () => CatchUpReport };
  readonly readRemoteHead: (ref: string) => Promise<RemoteHead>;
  /** What is wrong with the service, or null. */
  readonly findFault: () => string | null;
  readonly statePath: string;
  readonly repoPath: string;
  /** The path of a directory on the host, by which roll-outs know a project; the same outside of a container. */
  readonly hostDirectory: (directory: string) => Promise<string>;
  readonly address: { readonly address: string; readonly port: number };
  readonly startedAtMs: number;
  readonly log: Log;
}
