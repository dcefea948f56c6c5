import type { ComposeTarget } from "./compose/compose.ts";
import type { Engine } from "./engine/engine.ts";
import type { Report } from "./report/report.ts";
import type { Version } from "./versions.ts";

/** What is asked of a roll-out. */
export interface RolloutRequest {
  readonly engine: Engine;
  readonly target: ComposeTarget;
  readonly env: NodeJS.ProcessEnv;
  /** Names of the services; none is all of them. */
  readonly services: readonly string[];
  /** The commit that is deployed, where the caller knows it; else what is checked out. */
  readonly commit: string | undefined;
  /** The directory of the live files, where it is not to be found from the compose file. */
  readonly liveDirectory: string | undefined;
  readonly lockPath: string;
  readonly versionsPath: string;
  readonly statePath: string;
  readonly lockWaitS: number;
  readonly withBuild: boolean;
  readonly withPull: boolean;
  /** Go back to this version's images instead of building. */
  readonly version?: Version;
  readonly report: Report;
  readonly signal: AbortSignal;
}
