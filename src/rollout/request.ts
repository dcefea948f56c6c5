import type { ComposeTarget } from "../platform/compose/commands.ts";
import type { Engine } from "../platform/docker/engine.ts";
import type { Report } from "./report/report.ts";
import { readVersions, type Version } from "./versions.ts";

/** What is asked of a roll-out. */
export interface RolloutRequest {
  readonly engine: Engine;
  readonly target: ComposeTarget;
  readonly env: NodeJS.ProcessEnv;
  /** Names of the services; none is all of them. */
  readonly services: readonly string[];
  /** The commit to name images after; undefined: the one that is checked out. */
  readonly commit: string | undefined;
  /** The directory of the live files, where it is not to be found from the compose file. */
  readonly liveDirectory: string | undefined;
  readonly lockPath: string;
  readonly versionsPath: string;
  readonly statePath: string;
  readonly lockWaitS: number;
  readonly withBuild: boolean;
  readonly withPull: boolean;
  /**
   * Go back to the images of a good version instead of building. Which one is chosen when the project's lock is held:
   * another roll-out may add one until then.
   *
   * @throws ProblemError `no_previous_version`
   */
  readonly chooseVersion?: (versions: readonly Version[]) => Version;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** A request whose turn it is. */
export interface LockedRequest extends RolloutRequest {
  /** What is gone back to; null where the sources are rolled out. */
  readonly version: Version | null;
  /** The last good version; null before the first one. */
  readonly current: Version | null;
}

/**
 * Reads the good versions and chooses from them, where one is to be gone back to. A roll-out whose version could not be
 * recorded is so refused before it begins.
 *
 * @throws ProblemError `state_unusable`, or `no_previous_version`
 */
export async function lockedRequest(request: RolloutRequest): Promise<LockedRequest> {
  const versions = await readVersions(request.versionsPath);
  const current = versions.at(-1) ?? null;
  return { ...request, version: request.chooseVersion?.(versions) ?? null, current };
}
