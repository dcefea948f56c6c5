import type { ComposeTarget } from "../platform/compose/commands.ts";
import type { Engine } from "../platform/docker/engine.ts";
import type { RolloutContext } from "./context.ts";
import type { Report } from "./report/report.ts";
import { readVersions, type Version } from "./versions.ts";

/** What a roll-out is asked to do. */
export interface RolloutRequest {
  readonly engine: Engine;
  readonly target: ComposeTarget;
  readonly env: NodeJS.ProcessEnv;
  /** Names of services; empty means all of them. */
  readonly services: readonly string[];
  /** The commit to name images after; undefined: the one that is checked out. */
  readonly commit: string | undefined;
  /** The directory of the live files, if it cannot be found from the compose file. */
  readonly liveDirectory: string | undefined;
  readonly lockPath: string;
  readonly versionsPath: string;
  readonly statePath: string;
  readonly lockWaitS: number;
  readonly withBuild: boolean;
  readonly withPull: boolean;
  /**
   * Goes back to the images of a good version instead of building. Chooses that version while the project's lock is
   * held: another roll-out may add one until then.
   *
   * @throws ProblemError `no_previous_version`
   */
  readonly chooseVersion?: (versions: readonly Version[]) => Version;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Reads the last good version, and for a roll back chooses the version. So a roll-out whose version could not be
 * recorded is refused before it begins.
 *
 * @throws ProblemError `state_unusable`, or `no_previous_version`
 */
export async function readVersionChoice({
  versionsPath,
  chooseVersion,
}: Pick<RolloutRequest, "versionsPath" | "chooseVersion">): Promise<
  Pick<RolloutContext, "version" | "current">
> {
  const versions = await readVersions(versionsPath);
  return { version: chooseVersion?.(versions) ?? null, current: versions.at(-1) ?? null };
}
