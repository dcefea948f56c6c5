import type { ConfigHashes } from "../platform/compose/ask-compose.ts";
import type { ComposeOptions } from "../platform/compose/run-compose.ts";
import type { Engine } from "../platform/docker/engine.ts";
import type { RolloutProject, RolloutService } from "./compose/project.ts";
import type { Report } from "./report/report.ts";
import type { Version } from "./versions.ts";

/** What the steps of every roll-out work with, by compose or by Swarm. */
export interface RolloutContext extends ComposeOptions {
  readonly engine: Engine;
  readonly project: RolloutProject;
  /** The container that this process runs in, if it belongs to the project: it is never stopped from in here. */
  readonly own: { readonly id: string; readonly service: string } | null;
  /** The directory in which the service in that container looks for a replacement request. */
  readonly statePath: string;
  readonly versionsPath: string;
  /** Images and the version are named after it. */
  readonly commit: string;
  /** The version to go back to; null to roll out the sources. */
  readonly version: Version | null;
  /** The last good version; null before the first one. */
  readonly current: Version | null;
  readonly report: Report;
  readonly lockDescriptor: number;
  /** Aborted when somebody asks the roll-out to stop. What was not switched yet is then abandoned. */
  readonly signal: AbortSignal;
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
  /** The lock that is held, for the service in the own container to wait for. */
  readonly lockPath: string;
}
