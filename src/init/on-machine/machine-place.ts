import { constants, realpathSync } from "node:fs";
import {
  machineFilesAt,
  machinePathOf,
  machineProject,
  machineStateAt,
  newMachineStatePath,
} from "../../config/machine-part.ts";
import { wholeNumber } from "../../config/values.ts";
import { listComposeDirectories } from "../../machine-part/engine.ts";
import { findMachinePart, type MachinePart } from "../../machine-part/find.ts";
import { isAllowed } from "../../platform/files.ts";
import { SetupError } from "../setup-error.ts";

/** The machine part that a project is added to, or that is made with it. */
export interface MachinePlace extends MachinePart {
  readonly isNew: boolean;
  /** The ports of the machine that Caddy has for http and https. */
  readonly ports: { readonly http: number; readonly https: number };
}

/**
 * Finds the machine part, or decides where it will be.
 *
 * @throws SetupError if this user may not change it, or the engine has another one
 */
export async function findMachinePlace(env: NodeJS.ProcessEnv): Promise<MachinePlace> {
  const found = findMachinePart(env);
  const part = found ?? newPart(env);
  const { path } = part.files;
  if (found !== null && !isAllowed(part.files.projectsPath, constants.W_OK)) {
    throw new SetupError(
      `Only the owner of ${path}, the machine part, may add projects to it. Run this with sudo.`,
    );
  }
  await refuseOtherMachinePart(path, env);
  // They can be chosen in the environment when the machine part is made. Later, they are in its .env.
  const ports = {
    http: portOf("HTTP_PORT", part.env.HTTP_PORT || env.HTTP_PORT || "80"),
    https: portOf("HTTPS_PORT", part.env.HTTPS_PORT || env.HTTPS_PORT || "443"),
  };
  return { ...part, isNew: found === null, ports };
}

function newPart(env: NodeJS.ProcessEnv): MachinePart {
  const isRoot = process.getuid?.() === 0;
  return {
    files: machineFilesAt(machinePathOf(env, isRoot)),
    state: machineStateAt(newMachineStatePath(env, isRoot)),
    env: {},
  };
}

/** Two would have the same containers, and each init would take them from the other. */
async function refuseOtherMachinePart(path: string, env: NodeJS.ProcessEnv): Promise<void> {
  const directories = await listComposeDirectories(machineProject, env);
  const other = directories.find((directory) => real(directory) !== real(path));
  if (other === undefined) return;
  throw new SetupError(
    `This Docker engine has a compose project called ${machineProject} already, in ${other}. If it is the machine part, use it: MACHINE_PATH=${other} hotpush init. Else remove it or rename it, because an engine has only one project of that name: docker compose --project-name ${machineProject} down`,
  );
}

function portOf(name: string, text: string): number {
  const port = wholeNumber(text, 1, 65_535);
  if (port === null)
    throw new SetupError(`${name} is ${JSON.stringify(text)}: expected a port from 1 to 65535.`);
  return port;
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
