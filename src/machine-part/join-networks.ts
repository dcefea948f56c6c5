import { projectNetwork, projectOfNetwork } from "../config/machine-part.ts";
import type { Subnet } from "../config/subnet.ts";
import { type Engine, EngineRefusal, filteredBy, getJson } from "../platform/docker/engine.ts";
import { ProblemError } from "../problems.ts";
import type { CaddyContainer } from "./caddy-container.ts";
import { makeProjectNetwork, projectLabel } from "./networks.ts";

export interface NetworkPlan {
  /** The projects whose networks Caddy must be on. */
  readonly joined: readonly string[];
  /** Projects that Caddy may still serve, beside those: it leaves the networks of all others. */
  readonly kept: readonly string[];
  /** By project: the host names that Caddy has on its network, for requests between its services. */
  readonly names: ReadonlyMap<string, readonly string[]>;
  readonly range: Subnet;
}

/**
 * Makes the networks of projects that are missing, joins Caddy to them, and lets it leave those of removed projects. If there
 * is nothing to do, the engine is not asked, unless a project has names for requests between its services. Neither joining nor
 * leaving interrupts a connection, because Caddy's own network sorts before those of projects and so stays its gateway. A new
 * name costs the connections between Caddy and that project.
 *
 * @returns a sentence for each project whose network could not be made or joined
 * @throws ProblemError `docker_unreachable`, or `docker_refused` if a network could not be left
 */
export async function joinNetworks(
  engine: Engine,
  caddies: readonly CaddyContainer[],
  plan: NetworkPlan,
): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const project of plan.joined.filter((one) => !isOnAll(caddies, one)))
    faults.push(...(await join(engine, caddies, project, plan)));
  for (const caddy of plan.names.size === 0 ? [] : caddies) await nameOnNetworks(engine, caddy, plan);
  await leaveRemoved(engine, caddies, new Set([...plan.joined, ...plan.kept]));
  return faults;
}

/** A network is never pruned while a running container is on it. Without a Caddy, it must be looked for. */
function isOnAll(caddies: readonly CaddyContainer[], project: string): boolean {
  return caddies.length > 0 && caddies.every(({ networks }) => networks.includes(projectNetwork(project)));
}

async function join(
  engine: Engine,
  caddies: readonly CaddyContainer[],
  project: string,
  { names, range }: NetworkPlan,
): Promise<readonly string[]> {
  try {
    await makeProjectNetwork(engine, project, range);
    const network = projectNetwork(project);
    for (const { id, networks } of caddies)
      if (!networks.includes(network)) await connect(engine, network, id, names.get(project));
    return [];
  } catch (error) {
    if (!(error instanceof ProblemError) || error.problem.code === "docker_unreachable") throw error;
    return [error.message];
  }
}

/** The engine can give names only to a container that joins. */
async function nameOnNetworks(engine: Engine, { id }: CaddyContainer, plan: NetworkPlan): Promise<void> {
  const path = `/containers/${id}/json`;
  const { NetworkSettings } = await getJson<InspectedNetworks>(engine, path);
  for (const [project, names] of plan.names) {
    const network = projectNetwork(project);
    const present = NetworkSettings.Networks[network];
    if (present === undefined || names.every((name) => present.Aliases?.includes(name))) continue;
    await engine.post(`/networks/${network}/disconnect`, { Container: id });
    await connect(engine, network, id, names);
  }
}

interface InspectedNetworks {
  readonly NetworkSettings: {
    readonly Networks: Readonly<Record<string, { readonly Aliases?: readonly string[] | null }>>;
  };
}

async function connect(
  engine: Engine,
  network: string,
  container: string,
  names: readonly string[] = [],
): Promise<void> {
  try {
    const EndpointConfig = { Aliases: names };
    await engine.post(`/networks/${network}/connect`, { Container: container, EndpointConfig });
  } catch (error) {
    // The container or the network was removed in the meantime, or another process was faster. The next look sees it.
    const isPast =
      error instanceof EngineRefusal && (error.status === 404 || /already exists/.test(error.message));
    if (!isPast) throw error;
  }
}

async function leaveRemoved(
  engine: Engine,
  caddies: readonly CaddyContainer[],
  present: ReadonlySet<string>,
): Promise<void> {
  for (const { id, networks } of caddies) {
    const removed = networks.filter((network) => isOfRemoved(network, present));
    if (removed.length === 0) continue;
    // A network that a person made and joined Caddy to is theirs.
    const ours = await listNames(engine, projectLabel);
    for (const network of removed.filter((one) => ours.includes(one)))
      await engine.post(`/networks/${network}/disconnect`, { Container: id });
  }
}

function isOfRemoved(network: string, present: ReadonlySet<string>): boolean {
  const project = projectOfNetwork(network);
  return project !== null && !present.has(project);
}

async function listNames(engine: Engine, label: string): Promise<readonly string[]> {
  const path = `/networks?${filteredBy({ label: [label] })}`;
  return (await getJson<readonly { readonly Name: string }[]>(engine, path)).map(({ Name }) => Name);
}
