import { liveMount, machineFilesAt } from "./config/machine-part.ts";
import { type Reconciling, startReconciling } from "./machine-part/reconcile.ts";
import { connectEngine } from "./platform/docker/engine.ts";
import type { SharedParts } from "./project-parts.ts";
import type { Projects } from "./projects/project.ts";

/** Keeps the networks, live directories and Caddy of the machine part at `machinePath` as its files say. */
export function keepMachinePart(
  { env, log, stopping }: SharedParts,
  machinePath: string,
  projects: Projects,
): Reconciling {
  const engine = connectEngine(env.DOCKER_HOST);
  const files = machineFilesAt(machinePath);
  return startReconciling({ files, livePath: liveMount, engine, projects, log, stopping });
}
