import { createHash } from "node:crypto";
import { basename, join, resolve } from "node:path";
import { defaultStatePath } from "../config/state-path.ts";
import type { Engine } from "../platform/docker/engine.ts";
import { ProblemError } from "../problems.ts";

/** Where roll-outs keep what they know of a project beside Docker: the lock, and the good versions. */
export interface RolloutState {
  readonly lockPath: string;
  readonly versionsPath: string;
  /** The state directory itself. */
  readonly statePath: string;
}

/** The files for the project in `projectDirectory`; two directories of the same name do not share them. */
export function rolloutState(stateDirectory: string, projectDirectory: string): RolloutState {
  const path = resolve(projectDirectory);
  const name = `${basename(path)}-${createHash("sha256").update(path).digest("hex").slice(0, 8)}`;
  const directory = join(stateDirectory, "rollout");
  const [lockPath, versionsPath] = [join(directory, `${name}.lock`), join(directory, `${name}.json`)];
  return { lockPath, versionsPath, statePath: stateDirectory };
}

/** `STATE_PATH`, else where the service keeps its state too. */
export function stateDirectoryOf(env: NodeJS.ProcessEnv): string {
  return env.STATE_PATH || defaultStatePath(env);
}

/**
 * Refuses to work beside the project's own Hotpush, which runs in a container and keeps the lock and the good versions
 * in there: from outside, two roll-outs would run at once, and prune would remove what roll back needs.
 *
 * @param projectDirectory as the host sees it
 * @param env `STATE_PATH` says that the state is known to be the right one; the image sets it
 * @throws ProblemError `state_unusable` with the container to run it in
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
  const filters = encodeURIComponent(JSON.stringify({ label, status: ["running"] }));
  const answer = await engine.get(`/containers/json?filters=${filters}`);
  const [container]: readonly { readonly Names: readonly string[] }[] = JSON.parse(answer.toString());
  if (!container) return;
  const name = container.Names[0]?.replace(/^\//, "") ?? "";
  throw new ProblemError({
    code: "state_unusable",
    detail: `Hotpush runs in the container ${name}, which has the lock of this project's roll-outs and the list of its good versions. Run the command there: docker exec ${name} hotpush ... Nothing was changed. (With STATE_PATH set, it runs here, on the state in that directory.)`,
  });
}

/**
 * What to throw where working with the file of a roll-out's state at `path` failed with `error`: ProblemError
 * `state_unusable` where the system refused (no permission, no directory, no room), else `error` itself.
 *
 * @param consequence a sentence on what that means
 */
export function stateFault(path: string, error: unknown, consequence = ""): unknown {
  if (!(error instanceof Error && "syscall" in error)) return error;
  const detail =
    `${path} cannot be used (${error.message}). Make it and its directory writable for this user, free some space where there is none, or set STATE_PATH to another directory. ${consequence}`.trimEnd();
  return new ProblemError({ code: "state_unusable", detail }, error);
}
