import type { RolloutService } from "../compose/project.ts";
import { onService, type Rollout, type RunningContainers } from "../context.ts";
import type { ServiceOutcome } from "../report/report.ts";
import { bringUpToDate } from "../steps/bring-up-to-date.ts";
import { createCompany } from "./company.ts";

/**
 * Brings the services up to date: each as soon as those that it depends on are, beside all others. When one fails, the
 * others go back or, if they had been replaced already, come to their end; then this throws.
 *
 * @param outcomes gets an outcome of each service that does not fail, in the order in which they end
 * @throws ProblemError of the first service that fails
 */
export async function bringAllUpToDate(
  rollout: Rollout,
  running: RunningContainers,
  outcomes: ServiceOutcome[],
): Promise<void> {
  const failing = new AbortController();
  const company = await createCompany(rollout, failing.signal);
  const failures: unknown[] = [];
  const ends = new Map<string, Promise<unknown>>();

  async function bring(service: RolloutService): Promise<void> {
    const { name, dependsOn } = service;
    await Promise.all(dependsOn.flatMap((one) => ends.get(one) ?? []));
    const on = { ...onService(rollout, service), company };
    outcomes.push(await bringUpToDate(on, running.get(name) ?? []));
  }

  for (const service of rollout.services.filter(({ replicas }) => replicas > 0)) {
    const end = bring(service).catch((error: unknown) => {
      failures.push(error);
      failing.abort();
      throw error;
    });
    ends.set(service.name, end);
  }
  await Promise.allSettled(ends.values());
  if (failures.length > 0) throw failures[0];
}
