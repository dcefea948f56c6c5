import type { Engine } from "../../platform/docker/engine.ts";
import { namesRegistry } from "../../platform/docker/image.ts";
import { ProblemError } from "../../problems.ts";
import type { RolloutRequest } from "../context.ts";
import { recordVersion } from "../record-version.ts";
import { type ServiceOutcome, timed } from "../report/report.ts";
import { inTurn, type LockedContext, selectServices } from "../with-rollout.ts";
import type { StackRollout } from "./context.ts";
import { findOwnTask } from "./own-task.ts";
import { moveFileNames, prepareStackImages } from "./prepare-stack-images.ts";
import { recordFirstStackVersion } from "./record-first-stack-version.ts";
import { recoverStack } from "./recover-stack.ts";
import { loadStack, type StackService } from "./stack.ts";
import { liveImages, servingStackImages } from "./stack-images.ts";
import { takeSnapshot } from "./task.ts";
import { withRollBack } from "./update-policy.ts";
import { updateServices } from "./update-services.ts";

/**
 * Brings a stack to the state in its file and its sources: lock, build and name by commit, push, `docker stack deploy`,
 * then wait until Swarm has updated everything, Hotpush itself last. If one service fails, the old versions of all serve.
 */
export async function rollOutStack(request: RolloutRequest): Promise<void> {
  await inTurn(request, async (context) => {
    const nodes = await requireManager(context.engine);
    return await rollOutAs(await openStack(context), nodes);
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
  const { Swarm }: { readonly Swarm?: SwarmInfo } = JSON.parse((await engine.get("/info")).toString());
  const isActive = Swarm?.LocalNodeState === "active";
  if (isActive && Swarm.ControlAvailable) return Swarm.Nodes ?? 1;
  const what = isActive ? "is a worker of its Swarm, no manager" : "is in no Swarm";
  throw new ProblemError({
    code: "swarm_inactive",
    detail: `The project is a stack, but the Docker engine ${what}. Run docker swarm init there, or deploy on a manager. Nothing was changed.`,
  });
}

async function openStack(context: LockedContext): Promise<StackRollout> {
  const { engine, target, env, report, signal, lockDescriptor, commit } = context;
  const read = () => loadStack({ env, signal, target, lockDescriptor }, commit);
  const { result } = await timed({ report }, "read", read, ({ stack }) => `stack ${stack.name}`);
  const { stack, options } = result;
  const task = await findOwnTask(engine);
  const own = task?.stack === stack.name ? task : null;
  const services = stack.services.map((service) =>
    service.name === own?.service ? { ...service, update: withRollBack(service.update) } : service,
  );
  return { ...context, ...options, lockDescriptor, project: { ...stack, services }, own };
}

async function rollOutAs(rollout: StackRollout, nodes: number): Promise<readonly ServiceOutcome[]> {
  const { engine, report, project, commit, version, withBuild, withPull } = rollout;
  const services = selectServices(project, rollout.names);
  report({ event: "started", project: project.name, commit, services: services.map(({ name }) => name) });
  warn(rollout, services, nodes);
  await recoverStack(rollout);
  const before = await takeSnapshot(engine, project.name);
  await recordFirstStackVersion(rollout, before);
  const live = await liveImages(engine, before.services);
  const images = await prepareStackImages(rollout, { services, live, commit, version }, withBuild);
  const outcomes = await updateServices({ rollout, deployment: { images, withPull }, before });
  await recordVersion(rollout, () => servingStackImages(rollout));
  await moveFileNames(rollout, services, images);
  return outcomes;
}

function warn({ report, project }: StackRollout, services: readonly StackService[], nodes: number): void {
  for (const { name, update, isBuilt, image } of project.services) {
    for (const text of update.warnings) report({ event: "note", service: name, text });
    if (nodes === 1 || !isBuilt || namesRegistry(image)) continue;
    const text = `the image ${image} names no registry, so that only this one of ${nodes} nodes has it`;
    report({ event: "note", service: name, text });
  }
  if (services.length < project.services.length) {
    const text =
      "the services that were not named keep their images; other changes to them in the file are deployed";
    report({ event: "note", service: null, text });
  }
}
