import type { Engine } from "../../platform/docker/engine.ts";
import { ProblemError } from "../../problems.ts";

/**
 * Makes sure that the engine manages a Swarm.
 *
 * @returns how many nodes the Swarm has
 * @throws ProblemError `swarm_inactive` where it does not
 */
export async function requireManager(engine: Engine): Promise<number> {
  const { Swarm }: { readonly Swarm?: SwarmInfo } = JSON.parse((await engine.get("/info")).toString());
  if (Swarm?.LocalNodeState === "active" && Swarm.ControlAvailable) return Swarm.Nodes ?? 1;
  const what = Swarm?.LocalNodeState === "active" ? "is a worker of its Swarm, no manager" : "is in no Swarm";
  throw new ProblemError({
    code: "swarm_inactive",
    detail: `The project is a stack, but the Docker engine ${what}. Run docker swarm init there, or deploy on a manager. Nothing was changed.`,
  });
}

interface SwarmInfo {
  readonly LocalNodeState?: string;
  readonly ControlAvailable?: boolean;
  readonly Nodes?: number;
}
