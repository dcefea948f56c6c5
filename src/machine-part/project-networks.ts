import { machineProject, machineServices, projectNetwork, projectOfNetwork } from "../config/machine-part.ts";
import { type Engine, EngineRefusal, filteredBy, getJson } from "../platform/docker/engine.ts";
import { ProblemError } from "../problems.ts";

/** The label of a project's network, with its name. */
const projectLabel = "hotpush.project";

/** Docker's own pools are used up after about 30 networks. These are /27: 29 containers beside the gateway. */
const subnets = Array.from({ length: 2_048 }, (_, n) => `10.231.${n >> 3}.${(n % 8) * 32}/27`);

/**
 * Makes the network of a project, if it is not there. Compose gives each service its bare name on its networks, so on a shared
 * one, `web` of one project would answer the callers of another's. Two processes may make it at once.
 *
 * @throws ProblemError `docker_unreachable` or `docker_refused`
 */
export async function makeProjectNetwork(engine: Engine, project: string): Promise<void> {
  const Name = projectNetwork(project);
  const networks = await getJson<readonly { readonly Name: string }[]>(engine, "/networks");
  if (networks.some((network) => network.Name === Name)) return;
  for (const Subnet of subnets) {
    try {
      const IPAM = { Config: [{ Subnet }] };
      await engine.post("/networks/create", { Name, Labels: { [projectLabel]: project }, IPAM });
      return;
    } catch (error) {
      // Another process has made it in the meantime.
      if (error instanceof EngineRefusal && error.status === 409) return;
      const isTaken = error instanceof EngineRefusal && /overlap/i.test(error.message);
      if (!isTaken || Subnet === subnets.at(-1)) throw error;
    }
  }
}

/** A container of the machine part's Caddy. There are two for a moment while compose recreates it. */
export interface CaddyContainer {
  readonly id: string;
  /** The names of the networks that it is on, or will be on when it starts. */
  readonly networks: readonly string[];
}

/**
 * The containers of the machine part's Caddy that run, or are about to: compose makes the new one before it stops the
 * old one, so there is time to join the new one to networks.
 */
export async function listCaddyContainers(engine: Engine): Promise<readonly CaddyContainer[]> {
  const project = `com.docker.compose.project=${machineProject}`;
  const service = `com.docker.compose.service=${machineServices.caddy}`;
  const status = ["created", "running", "restarting", "paused"];
  const filters = { label: [project, service, "com.docker.compose.oneoff=False"], status };
  const listed = await getJson<readonly ListedContainer[]>(engine, `/containers/json?${filteredBy(filters)}`);
  return listed.map(({ Id, NetworkSettings }) => ({
    id: Id,
    networks: Object.keys(NetworkSettings?.Networks ?? {}),
  }));
}

interface ListedContainer {
  readonly Id: string;
  readonly NetworkSettings?: { readonly Networks?: Readonly<Record<string, unknown>> };
}

export interface NetworkPlan {
  /** The projects whose networks Caddy must be on. */
  readonly joined: readonly string[];
  /** Projects that Caddy may still serve, beside those: it leaves the networks of all others. */
  readonly kept: readonly string[];
  /** By project: the host names that Caddy has on its network, for requests between its services. */
  readonly names: ReadonlyMap<string, readonly string[]>;
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
  { names }: NetworkPlan,
): Promise<readonly string[]> {
  try {
    await makeProjectNetwork(engine, project);
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
