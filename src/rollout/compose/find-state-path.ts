import { constants } from "node:fs";
import { join } from "node:path";
import { stateDirectoryOf } from "../../config/state-path.ts";
import { loadModel } from "../../platform/compose/ask-compose.ts";
import type { ComposeTarget } from "../../platform/compose/commands.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { isAllowed } from "../../platform/files.ts";
import { ProblemError } from "../../problems.ts";
import { findMachineState, machineProjectOf } from "./machine-part.ts";

/**
 * The state directory of a project's roll-outs. For a project on the machine part it is the one that its deploy script
 * gets as STATE_PATH, also by hand: so a roll-out by hand and one by the script exclude each other, and know the same
 * good versions.
 *
 * @throws ProblemError `state_unusable` if this user may not use it
 */
export async function findStatePath(
  engine: Engine,
  target: ComposeTarget,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  // The machine part's own container has another STATE_PATH, that of the service.
  if (env.STATE_PATH && !env.MACHINE_STATE_PATH) return stateDirectoryOf(env);
  const machine = await findMachineState(engine, env);
  if (machine === null) return stateDirectoryOf(env);
  const project = await projectOf(target, env);
  if (project === null) return stateDirectoryOf(env);
  const path = join(machine.projects, project);
  if (isAllowed(path, constants.W_OK | constants.X_OK)) return path;
  const detail = `The lock of the roll-outs of ${project} and the list of its good versions are in ${path}, which this user cannot use. Run the command as the owner of the checkout or as root (sudo hotpush ...). If the directory is missing, the machine part makes it when it runs: docker start hotpush-run-1. Nothing was changed.`;
  throw new ProblemError({ code: "state_unusable", detail });
}

/** Null if compose cannot read the project: the roll-out reports that, with compose's message. */
async function projectOf(target: ComposeTarget, env: NodeJS.ProcessEnv): Promise<string | null> {
  const { signal } = new AbortController();
  const model = await loadModel({ target, env, signal, lockDescriptor: undefined }).catch(() => null);
  return model && machineProjectOf(model);
}
