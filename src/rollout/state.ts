import { createHash } from "node:crypto";
import { basename, join, resolve } from "node:path";
import { defaultStatePath } from "../config/state-path.ts";
import { type Engine, filteredBy, getJson } from "../platform/docker/engine.ts";
import { ProblemError } from "../problems.ts";

/** The files in which roll-outs keep what Docker does not: the lock, and the good versions. */
export interface RolloutState {
  readonly lockPath: string;
  readonly versionsPath: string;
  /** The state directory itself. */
  readonly statePath: string;
}

/** The files for the project in `projectDirectory`. Two directories of the same name do not share them. */
export function rolloutState(stateDirectory: string, projectDirectory: string): RolloutState {
  const path = resolve(projectDirectory);
  const name = `${basename(path)}-${createHash("sha256").update(path).digest("hex").slice(0, 8)}`;
  const directory = join(stateDirectory, "rollout");
  const [lockPath, versionsPath] = [join(directory, `${name}.lock`), join(directory, `${name}.json`)];
  return { lockPath, versionsPath, statePath: stateDirectory };
}

/** `STATE_PATH`, or else the directory in which the service keeps its state. */
export function stateDirectoryOf(env: NodeJS.ProcessEnv): string {
  return env.STATE_PATH || defaultStatePath(env);
}

/**
 * Refuses to work outside of the container in which the project's own Hotpush runs, and keeps the lock and the good
 * versions. From outside, two roll-outs could run at once, and prune would remove images that a roll back needs.
 *
 * @param projectDirectory as the host sees it
 * @param env `STATE_PATH` in it confirms that the state is the right one; the image sets it
 * @throws ProblemError `state_unusable` with the container to run the command in
 */
export async function refuseOtherState(
  engine: Engine,
  projectDirectory: string,
  { STATE_PATH }: NodeJS.ProcessEnv,
): Promise<void> {
  if (STATE_PATH) return;
  const label = [
    "org.opencontainers.image.title=Hotpush",
    `com.docker.compose.project.working_dir=${projectDirectory}`,
  ];
  const path = `/containers/json?${filteredBy({ label, status: ["running"] })}`;
  const [container] = await getJson<readonly { readonly Names: readonly string[] }[]>(engine, path);
  if (!container) return;
  const name = container.Names[0]?.replace(/^\//, "") ?? "";
  throw new ProblemError({
    code: "state_unusable",
    detail: `Hotpush runs in the container ${name}, which holds the lock of this project's roll-outs and the list of its good versions. Run the command there: docker exec ${name} hotpush ... Nothing was changed. (With STATE_PATH set, it runs here, on the state in that directory.)`,
  });
}

/**
 * The error to throw if working with the state file at `path` failed with `error`: ProblemError `state_unusable` if
 * the system refused (no permission, no directory, no space), else `error` itself.
 *
 * @param consequence a sentence on the effect
 */
export function stateFault(path: string, error: unknown, consequence = ""): unknown {
  if (!(error instanceof Error && "syscall" in error)) return error;
  const detail =
    `${path} cannot be used (${error.message}). Make it and its directory writable for this user, free some space if the disk is full, or set STATE_PATH to another directory. ${consequence}`.trimEnd();
  return new ProblemError({ code: "state_unusable", detail }, error);
}
