import { type Engine, getJson } from "../../platform/docker/engine.ts";
import { namesRegistry } from "../../platform/docker/image.ts";
import { ProblemError } from "../../problems.ts";
import type { RolloutRequest } from "../context.ts";
import { recordVersion } from "../record-version.ts";
import { note, type ServiceOutcome, timed } from "../report/report.ts";
import { inTurn, type LockedContext, selectServices, withoutOwn } from "../with-rollout.ts";
import { withStackRequestsCounted } from "./count-stack-requests.ts";
import { moveFileNames, prepareStackImages } from "./prepare-stack-images.ts";
import { recoverStack } from "./recover-stack.ts";
import { loadStack, type StackRollout, type StackService } from "./stack.ts";
import { recordFirstStackVersion, servingStackImages } from "./stack-versions.ts";
import { findOwnTask, readStackState } from "./swarm-service.ts";
import { updateServices } from "./update-services.ts";

/**
 * Brings a stack to the state in its file and its sources: lock, build and name by commit, push, `docker stack deploy`,
 * then wait until Swarm has updated everything. If one service fails, the old versions of all serve.
 */
export async function rollOutStack(request: RolloutRequest): Promise<void> {
  await inTurn(request, async (context) => {
    const nodes = await requireManager(context.engine);
    const rollout = await openStack(context);
    const { project, commit, report } = rollout;
    const services = selectServices(rollout, rollout.names);
    report({ event: "started", project: project.name, commit, services: services.map(({ name }) => name) });
    warn(rollout, services, nodes);
    await recoverStack(rollout);
    return await withStackRequestsCounted(rollout, () => rollOutServices(rollout, services));
  });
}

interface SwarmInfo {
  readonly LocalNodeState?: string;
  readonly ControlAvailable?: boolean;
  readonly Nodes?: number;
}

/**
 * Makes sure that the engine manages a Swarm.
 *
 * @returns how many nodes the Swarm has
 * @throws ProblemError `swarm_inactive` if it does not
 */
async function requireManager(engine: Engine): Promise<number> {
  const { Swarm } = await getJson<{ readonly Swarm?: SwarmInfo }>(engine, "/info");
  const isActive = Swarm?.LocalNodeState === "active";
  if (isActive && Swarm.ControlAvailable) return Swarm.Nodes ?? 1;
  const what = isActive ? "is a worker of its Swarm, no manager" : "is in no Swarm";
  throw new ProblemError({
    code: "swarm_inactive",
    detail: `The project is a stack, but the Docker engine ${what}. Run docker swarm init there, or deploy on a manager. Nothing was changed.`,
  });
}

async function openStack(context: LockedContext): Promise<StackRollout> {
  const read = () => loadStack(context, context.commit);
  const { result } = await timed(context, "read", read, ({ project }) => `stack ${project.name}`);
  const task = await findOwnTask(context.engine);
  const own = task?.stack === result.project.name ? task.service : null;
  return { ...context, ...result, own, project: withoutOwn(result.project, own) };
}

function warn({ report, project }: StackRollout, services: readonly StackService[], nodes: number): void {
  for (const service of project.services) {
    const { update, isBuilt, image } = service;
    for (const text of update.warnings) note({ report, service }, text);
    if (nodes === 1 || !isBuilt || namesRegistry(image)) continue;
    const text = `the image ${image} names no registry, so that only this one of ${nodes} nodes has it`;
    note({ report, service }, text);
  }
  if (services.length === project.services.length) return;
  const text =
    "the services that were not named keep their images; other changes to them in the file are deployed";
  note({ report }, text);
}

async function rollOutServices(
  rollout: StackRollout,
  services: readonly StackService[],
): Promise<readonly ServiceOutcome[]> {
  const before = await readStackState(rollout.engine, rollout.project.name);
  await recordFirstStackVersion(rollout, before);
  const images = await prepareStackImages(rollout, services, before);
  const outcomes = await updateServices(rollout, images, before);
  await recordVersion(rollout, () => servingStackImages(rollout));
  await moveFileNames(rollout, services, images);
  return outcomes;
}
