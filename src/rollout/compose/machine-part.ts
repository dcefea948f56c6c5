import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import {
  liveMount,
  type MachineState,
  machineFilesAt,
  machinePathOf,
  machineProject,
  machineServices,
  machineStateAt,
  projectOfNetwork,
  serviceAlias,
} from "../../config/machine-part.ts";
import type { Environment } from "../../config/settings.ts";
import type { ComposeModel } from "../../platform/compose/model.ts";
import { listContainers } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { ownUid } from "../../platform/files.ts";
import type { Containers } from "../context.ts";

/**
 * The project on the machine part that a compose model belongs to, by its external network `hotpush-<name>`; null if it
 * is not on the machine part. If it is in the networks of several, its own is the one in which its services have
 * their names for the proxy, else the one with the name of the compose project.
 */
export function machineProjectOf({ name, networks = {}, services }: ComposeModel): string | null {
  const joined = Object.entries(networks).flatMap(([key, network]) => {
    const project = network.external ? projectOfNetwork(network.name) : null;
    return project === null ? [] : [{ key, project }];
  });
  const hasAliases = ({ key, project }: { readonly key: string; readonly project: string }) =>
    Object.entries(services).some(([service, { networks: own }]) =>
      own?.[key]?.aliases?.includes(serviceAlias(service, project)),
    );
  const own = joined.find(hasAliases) ?? joined.find(({ project }) => project === name) ?? joined[0];
  return own?.project ?? null;
}

/**
 * Finds the state directories of the engine's machine part, as paths on this machine: by its containers, which may have
 * stopped, or else by its files.
 *
 * @returns null if there is no machine part, or if this user cannot read its files
 */
export async function findMachineState(engine: Engine, env: Environment): Promise<MachineState | null> {
  const containers = await listContainers(engine, machineProject);
  const path = statePathOfRun(containers) ?? statePathInFile(env);
  if (path === null) return null;
  const state = machineStateAt(path);
  return { ...state, live: livePathOfCaddy(containers) ?? state.live };
}

function statePathOfRun(containers: Containers): string | null {
  const run = containers.find(({ service }) => service === machineServices.run);
  const prefix = "MACHINE_STATE_PATH=";
  return run?.environment.find((variable) => variable.startsWith(prefix))?.slice(prefix.length) || null;
}

function livePathOfCaddy(containers: Containers): string | null {
  const caddy = containers.find(({ service }) => service === machineServices.caddy);
  return caddy?.mounts.find(({ target }) => target === liveMount)?.source ?? null;
}

function statePathInFile(env: Environment): string | null {
  const { envFile } = machineFilesAt(machinePathOf(env, ownUid() === 0));
  try {
    return parseEnv(readFileSync(envFile, "utf8")).STATE_PATH || null;
  } catch {
    return null;
  }
}
