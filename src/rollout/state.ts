import { createHash } from "node:crypto";
import { basename, join, resolve } from "node:path";
import { defaultStatePath } from "../config/state-path.ts";

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
