import { machineNetwork, machineServices, projectNetwork } from "../../config/machine-part.ts";
import { getJson } from "../../platform/docker/engine.ts";
import { projectNames } from "../../projects/project-files.ts";
import { type CheckFinding, type Fault, okUnless, problem, skip } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import type { MachineContainer } from "./probe-machine-part.ts";

type Machine = Pick<DoctorContext, "machineContainers" | "engine" | "projectsPath">;

/** Caddy reaches a project by its network. `run` makes and joins these within seconds, so a fault here lasts. */
export async function checkMachineNetworks(context: Machine): Promise<CheckFinding> {
  const caddy = (await context.machineContainers())?.get(machineServices.caddy);
  const names = await networkNames(context);
  if (caddy?.State.Status !== "running" || names === null) return skip("Caddy does not run");
  const projects = projectsIn(context);
  const faults = [...gatewayFaults(caddy), ...projects.flatMap((project) => faultsOf(project, caddy, names))];
  const count =
    projects.length === 1 ? "the network of 1 project" : `the networks of ${projects.length} projects`;
  return okUnless(faults, `Caddy is in ${count}, and ${machineNetwork} is its gateway`);
}

async function networkNames({ engine }: Machine): Promise<ReadonlySet<string> | null> {
  const docker = await engine();
  if (docker.kind !== "answers") return null;
  const listed = await getJson<readonly { readonly Name: string }[]>(docker.engine, "/networks");
  return new Set(listed.map(({ Name }) => Name));
}

function projectsIn({ projectsPath }: Machine): readonly string[] {
  try {
    return projectsPath === null ? [] : projectNames(projectsPath).toSorted();
  } catch {
    return []; // Another check reports it.
  }
}

/** Docker publishes ports by way of the network whose name sorts first, and moves them if an earlier one is joined. */
function gatewayFaults({ NetworkSettings }: MachineContainer): readonly Fault[] {
  const joined = Object.keys(NetworkSettings.Networks);
  const missing = `Caddy is not in its own network ${machineNetwork}, so its ports may move when a project comes.`;
  if (!joined.includes(machineNetwork)) return [problem(missing, recreate)];
  const earlier = joined.filter((name) => name < machineNetwork);
  if (earlier.length === 0) return [];
  const text = `Caddy is also in ${earlier.join(", ")}, which sorts before ${machineNetwork}: leaving it would cut requests of all projects. Take it out of the services of compose.yaml, and leave it when few visitors are there:`;
  return [
    problem(text, earlier.map((name) => `docker network disconnect ${name} ${containerName}`).join(" && ")),
  ];
}

const containerName = `${machineNetwork}-${machineServices.caddy}-1`;
const recreate = { change: `networks: [${machineNetwork}] at the service caddy in compose.yaml` };

function faultsOf(project: string, caddy: MachineContainer, names: ReadonlySet<string>): readonly Fault[] {
  const network = projectNetwork(project);
  if (network in caddy.NetworkSettings.Networks) return [];
  const fact = names.has(network) ? `Caddy is not in ${network}` : `There is no network ${network}`;
  const text = `${fact}, so ${project} answers no request. \`hotpush run\` makes and joins it within seconds; its log says why it cannot:`;
  return [problem(text, `docker logs --tail 50 ${machineNetwork}-${machineServices.run}-1`)];
}
