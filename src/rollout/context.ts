import type { ConfigHashes } from "../platform/compose/ask-compose.ts";
import type { ComposeTarget } from "../platform/compose/commands.ts";
import type { Engine } from "../platform/docker/engine.ts";
import type { Project } from "./compose/project.ts";
import type { Report } from "./report/report.ts";

/** What every step of a roll-out works with. */
export interface Rollout {
  readonly engine: Engine;
  readonly target: ComposeTarget;
  readonly env: NodeJS.ProcessEnv;
  readonly project: Project;
  /** Of the project's services; compose is asked for them while images are built. A stack has none. */
  readonly configHashes: Promise<ConfigHashes>;
  /** The directory of the live files, or null where the project has none. */
  readonly liveDirectory: string | null;
  /** The live files that the proxy reads; null where it does not say. */
  readonly liveFilesRead: ReadonlySet<string> | null;
  /** The container that this process runs in, where it is one of the project: it is never stopped from in here. */
  readonly own: { readonly id: string; readonly service: string } | null;
  /** Where the service in that container looks for what a roll-out asks of it. */
  readonly statePath: string;
  /** The lock that is held, for that service to wait for. */
  readonly lockPath: string;
  readonly report: Report;
  readonly lockDescriptor: number;
  /** Aborted when somebody asks the roll-out to stop; what was not switched yet is abandoned then. */
  readonly signal: AbortSignal;
}
