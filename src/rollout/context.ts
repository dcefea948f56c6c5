import type { ConfigHashes } from "../platform/compose/ask-compose.ts";
import type { ComposeTarget } from "../platform/compose/commands.ts";
import type { ComposeOptions } from "../platform/compose/run-compose.ts";
import type { Engine } from "../platform/docker/engine.ts";
import type { RolloutProject, RolloutService } from "./compose/project.ts";
import type { Report } from "./report/report.ts";
import type { RolloutState } from "./state.ts";
import type { Version } from "./versions.ts";

/** What a roll-out is asked to do. */
export interface RolloutRequest extends RolloutState {
  readonly engine: Engine;
  readonly target: ComposeTarget;
  readonly env: NodeJS.ProcessEnv;
  /** Names of services; empty means all of them. */
  readonly names: readonly string[];
  /** The commit to name images after; undefined: the one that is checked out. */
  readonly commit: string | undefined;
  /** The directory of the live files, if it cannot be found from the compose file. */
  readonly livePath: string | undefined;
  readonly lockWaitS: number;
  readonly withBuild: boolean;
  readonly withPull: boolean;
  /** Goes back to the good version of `commit`, or without one to the previous; null rolls out the sources. */
  readonly back: { readonly commit: string | undefined } | null;
  readonly report: Report;
  /** Aborted to stop the roll-out. Services that were not switched yet are then abandoned. */
  readonly signal: AbortSignal;
}

/** What the steps of every roll-out work with, by compose or by Swarm. */
export interface RolloutContext extends RolloutRequest, ComposeOptions {
  readonly project: RolloutProject;
  /** The container that this process runs in, if it belongs to the project: it is never stopped from in here. */
  readonly own: { readonly id: string; readonly service: string } | null;
  /** Images and the version are named after it. */
  readonly commit: string;
  /** The version to go back to; null to roll out the sources. */
  readonly version: Version | null;
  /** The last good version; null before the first one. */
  readonly current: Version | null;
  /** Also held by every command that changes containers, and by the service while it replaces its own. */
  readonly lockDescriptor: number;
}

/** What the steps of a roll-out by compose work with. */
export interface Rollout extends RolloutContext {
  /** Those to roll out, with Hotpush itself last. */
  readonly services: readonly RolloutService[];
  /** Of the project's services; compose is asked for them while images are built. */
  readonly configHashes: Promise<ConfigHashes>;
  /** The directory of the live files, or null if the project has none. */
  readonly liveDirectory: string | null;
  /** The live files that the proxy reads; null if it does not say. */
  readonly liveFilesRead: ReadonlySet<string> | null;
}
