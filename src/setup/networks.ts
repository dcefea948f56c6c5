import { projectNetwork, projectOfNetwork, serverComposeProject, serverServices } from "#config/server";
import { type Engine, EngineRefusal, getJson, nullIfMissing } from "#platform/docker/engine";
import { ProblemError } from "#problems";
import { listByFilter } from "./machine.ts";

/** A container of Caddy. There are two for a moment while compose recreates it. */
export type CaddyContainer = Pick<Listed, "id" | "networks">;
type Listed = Awaited<ReturnType<typeof listByFilter>>[number];

/**
 * Makes the networks of projects that are missing, joins Caddy to them, and lets it leave those of removed projects. If there
 * is nothing to do, the engine is not asked. Neither joining nor leaving interrupts a connection, because Caddy's own network sorts
 * before those of projects and so stays its gateway.
 *
 * @param joined the projects whose networks Caddy must be on
 * @param kept those that Caddy may still serve: it leaves the networks of all others
 * @returns a sentence for each project whose network could not be made or joined
 * @throws ProblemError `docker_unreachable`, or `docker_refused` if a network could not be left
 */
export async function keepNetworks(
  engine: Engine,
  caddies: readonly CaddyContainer[],
  joined: readonly string[],
  kept: readonly string[],
): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const project of joined) {
    try {
      // A network is never pruned while a running container is on it. Without a Caddy, it must be looked for.
      const outside = caddies.filter(({ networks }) => !networks.includes(projectNetwork(project)));
      if (caddies.length === 0 || outside.length > 0) await makeProjectNetwork(engine, project);
      for (const { id } of outside)
        await engine.post(`/networks/${projectNetwork(project)}/connect`, { Container: id });
    } catch (error) {
      if (!(error instanceof ProblemError) || error.problem.code === "docker_unreachable") throw error;
      faults.push(error.message);
    }
  }
  const present = [...joined, ...kept];
  for (const { id, networks } of caddies)
    for (const network of networks) {
      const project = projectOfNetwork(network);
      if (project !== null && !present.includes(project))
        await engine.post(`/networks/${network}/disconnect`, { Container: id });
    }
  return faults;
}

/**
 * The containers of Caddy that run, or are about to: compose makes the new one before it stops the old one, so there is time to
 * join the new one to networks.
 */
export async function listCaddyContainers(engine: Engine): Promise<readonly CaddyContainer[]> {
  const project = `com.docker.compose.project=${serverComposeProject}`;
  const service = `com.docker.compose.service=${serverServices.caddy}`;
  const label = [project, service, "com.docker.compose.oneoff=False"];
  return await listByFilter(engine, { label, status: ["created", "running", "restarting", "paused"] });
}

/**
 * Replaces the network of a project that is not internal, as earlier versions made it, unless containers of the project are on it, also
 * stopped ones, which would not start without it.
 *
 * @returns whether it is internal now, or a user's own
 */
export async function renewProjectNetwork(engine: Engine, project: string): Promise<boolean> {
  const network = projectNetwork(project);
  const find = () => nullIfMissing(getJson<Network>(engine, `/networks/${network}`));
  const isOld = (found: Network | null) =>
    found?.Labels?.["hotpush.project"] !== undefined && !found.Internal;
  for (let left = mostRejoins; left >= 0 && isOld(await find()); left--) {
    const joined = await listByFilter(engine, { network: [network] });
    if (!joined.every(isCaddy)) return false;
    try {
      for (const { id: Container } of joined)
        await engine.post(`/networks/${network}/disconnect`, { Container });
      await nullIfMissing(engine.delete(`/networks/${network}`));
    } catch (error) {
      // `run` has joined Caddy again, or made it leave.
      if (left === 0 || !(error instanceof EngineRefusal) || error.status !== 403) throw error;
    }
  }
  await makeProjectNetwork(engine, project);
  return !isOld(await find());
}

function isCaddy({ project, service }: Pick<Listed, "project" | "service">): boolean {
  return project === serverComposeProject && service === serverServices.caddy;
}

/** `run` looks each second whether Caddy is on it. */
const mostRejoins = 4;

interface Network {
  readonly Internal: boolean;
  readonly Labels: Readonly<Record<string, string>> | null;
}

/** Docker's own pools are used up after about 30 networks. These are /27: 29 containers beside the gateway. */
const subnets = Array.from({ length: 2_048 }, (_, n) => `10.231.${n >> 3}.${(n % 8) * 32}/27`);

/**
 * Makes the network of a project, if it is not there. Compose gives each service its bare name on its networks, so on a shared
 * one, `web` of one project would answer the callers of another's. It is internal, so that it gives no service a way out that its own
 * networks do not have. Two processes may make it at once.
 *
 * @throws ProblemError `docker_unreachable` or `docker_refused`
 */
export async function makeProjectNetwork(engine: Engine, project: string): Promise<void> {
  const Name = projectNetwork(project);
  const networks = await getJson<readonly { readonly Name: string }[]>(engine, "/networks");
  if (networks.some((network) => network.Name === Name)) return;
  for (const Subnet of subnets) {
    try {
      const Labels = { "hotpush.project": project };
      await engine.post("/networks/create", { Name, Labels, Internal: true, IPAM: { Config: [{ Subnet }] } });
      return;
    } catch (error) {
      // Another process has made it in the meantime.
      if (error instanceof EngineRefusal && error.status === 409) return;
      const isTaken = error instanceof EngineRefusal && /overlap/i.test(error.message);
      if (!isTaken || Subnet === subnets.at(-1)) throw error;
    }
  }
}
