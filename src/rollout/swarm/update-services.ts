import { checkThroughProxy } from "../proxy/check.ts";
import { type ServiceOutcome, timed } from "../report/report.ts";
import { deployStack, type StackImages } from "./deploy-stack.ts";
import { rollBackStack } from "./recover-stack.ts";
import type { StackRollout } from "./stack.ts";
import type { StackState } from "./swarm-service.ts";
import { waitForServices } from "./wait-for-services.ts";

/**
 * Deploys all services and waits for the result. If one fails, all changed services are rolled back.
 *
 * @param before the stack as it was, to compare with and to roll back to
 * @throws ProblemError that names the failed service and the reason
 */
export async function updateServices(
  rollout: StackRollout,
  images: StackImages,
  before: StackState,
): Promise<readonly ServiceOutcome[]> {
  const { services } = rollout.project;
  try {
    await deployStack(rollout, images);
    const wait = () => waitForServices(rollout, services, before);
    const { result } = await timed(rollout, "update", wait, "Swarm is done");
    const changed = result.filter(({ outcome }) => outcome !== "unchanged").map(({ service }) => service);
    for (const service of services.filter(({ name }) => changed.includes(name))) {
      await checkThroughProxy({ ...rollout, service });
    }
    return result;
  } catch (error) {
    await rollBackStack(rollout, before);
    throw error;
  }
}
