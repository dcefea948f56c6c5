import { projectNetwork } from "../config/machine-part.ts";
import { findFreeSubnet, formatSubnet, parseSubnet, type Subnet } from "../config/subnet.ts";
import { type Engine, EngineRefusal, getJson } from "../platform/docker/engine.ts";
import { ProblemError } from "../problems.ts";

/** The label of a project's network, with its name. */
export const projectLabel = "hotpush.project";

/**
 * Makes the network of a project, if it is not there: with a subnet of its own, because Docker's default pools are used up
 * after about 30 networks. Two processes may do it at once.
 *
 * @param range the subnet is the first in it that overlaps no network of the engine
 * @throws ProblemError `network_range_full`, `docker_unreachable` or `docker_refused`
 */
export async function makeProjectNetwork(engine: Engine, project: string, range: Subnet): Promise<void> {
  const name = projectNetwork(project);
  const refused: Subnet[] = [];
  for (;;) {
    const networks = await getJson<readonly ListedNetwork[]>(engine, "/networks");
    if (networks.some(({ Name }) => Name === name)) return;
    const taken = [...networks.flatMap(subnetsOf), ...refused];
    const subnet = findFreeSubnet(range, taken);
    if (subnet === null) throw rangeFull(project, range);
    if ((await create(engine, project, subnet)) === "exists") return;
    // Another process may have taken the subnet since, or something that is in no list.
    refused.push(subnet);
  }
}

/** As much as is used of each in the engine's list. */
interface ListedNetwork {
  readonly Name: string;
  readonly IPAM: { readonly Config: readonly { readonly Subnet?: string }[] | null };
}

/** The IPv6 ones overlap nothing. */
function subnetsOf({ IPAM }: ListedNetwork): readonly Subnet[] {
  return (IPAM.Config ?? []).flatMap(({ Subnet = "" }) => parseSubnet(Subnet) ?? []);
}

function rangeFull(project: string, range: Subnet): ProblemError {
  const detail = `The project ${project} needs a network, but every subnet of NETWORK_RANGE (${formatSubnet(range)}) overlaps a network of this engine. Remove networks that nothing uses (docker network prune), or set NETWORK_RANGE in the .env of the machine part to a larger range that this machine does not use, and run: docker compose up --detach`;
  return new ProblemError({ code: "network_range_full", detail });
}

async function create(engine: Engine, project: string, subnet: Subnet): Promise<"exists" | "overlaps"> {
  try {
    await engine.post("/networks/create", {
      Name: projectNetwork(project),
      Labels: { [projectLabel]: project },
      IPAM: { Config: [{ Subnet: formatSubnet(subnet) }] },
    });
    return "exists";
  } catch (error) {
    if (!(error instanceof EngineRefusal)) throw error;
    // Another process has made it in the meantime.
    if (error.status === 409) return "exists";
    if (/overlap/i.test(error.problem.detail)) return "overlaps";
    throw error;
  }
}
