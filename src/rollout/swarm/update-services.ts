import { checkThroughProxy } from "../proxy/check.ts";
import { type ServiceOutcome, timed } from "../report/report.ts";
import type { StackRollout } from "./context.ts";
import { type Deployment, deployStack } from "./deploy-stack.ts";
import { goBack } from "./go-back.ts";
import { isBeingStopped } from "./own-task.ts";
import type { Snapshot } from "./snapshot.ts";
import type { StackService } from "./stack.ts";
import { updateItself } from "./update-itself.ts";
import { waitForServices } from "./wait-for-services.ts";

/**
 * Brings all services to their new state, Hotpush itself last. Where one fails, all that were changed go back.
 *
 * @param before the stack as it was, to go back to
 * @throws ProblemError that says which service failed, and why
 */
export async function updateServices(
  rollout: StackRollout,
  deployment: Deployment,
  before: Snapshot,
): Promise<readonly ServiceOutcome[]> {
  const { project, own } = rollout;
  const isItself = ({ name }: StackService) => name === own?.service;
  const others = project.services.filter((service) => !isItself(service));
  const itself = project.services.find(isItself);
  const deploy = (services: readonly StackService[]) => deployStack(rollout, services, deployment);
  const update = (services: readonly StackService[]) => updateAll(rollout, services, deployment, before);
  try {
    const outcomes = others.length === 0 ? [] : await update(others);
    if (!itself) return outcomes;
    return [...outcomes, await updateItself(rollout, itself, before, { deploy, update })];
  } catch (error) {
    // Its own update ends this process where the deployment takes longer than its task is given for that. The new task
    // then runs the deployment again, and finds all of this done.
    const isStopped = await isBeingStopped(rollout).catch(() => false); // What failed is told, not that nobody answers.
    if (!isStopped) await goBack(rollout, before);
    throw error;
  }
}

async function updateAll(
  rollout: StackRollout,
  services: readonly StackService[],
  deployment: Deployment,
  before: Snapshot,
): Promise<readonly ServiceOutcome[]> {
  await deployStack(rollout, services, deployment);
  const wait = () => waitForServices(rollout, services, before);
  const { result } = await timed(rollout.report, null, "update", wait, () => "Swarm is done");
  for (const service of services) {
    const outcome = result.find((one) => one.service === service.name)?.outcome;
    if (outcome !== "unchanged") await checkThroughProxy(rollout, service);
  }
  return result;
}
