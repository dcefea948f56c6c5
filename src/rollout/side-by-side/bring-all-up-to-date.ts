import { type Containers, onService, type Rollout, type RunningContainers } from "../context.ts";
import type { ServiceOutcome } from "../report/report.ts";
import { bringUpToDate } from "../steps/bring-up-to-date.ts";
import { createCompany } from "./company.ts";

/**
 * Brings the services up to date: each as soon as those that it depends on are, beside all others. Hotpush itself comes
 * last. When one fails, the others go back or, if they had been replaced already, come to their end; then this throws.
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
  let failure: { readonly error: unknown } | null = null;
  const ends = new Map<string, Promise<unknown>>();

  async function bring(name: string, awaited: readonly Promise<unknown>[]): Promise<void> {
    await Promise.all(awaited);
    const service = rollout.services.find((one) => one.name === name);
    if (service === undefined) return;
    const found: Containers = running.get(name) ?? [];
    outcomes.push(await bringUpToDate({ ...onService(rollout, service), company }, found));
  }

  for (const { name, dependsOn } of rollout.services.filter(({ replicas }) => replicas > 0)) {
    const isOwn = name === rollout.own?.service;
    const awaited = isOwn ? [...ends.values()] : dependsOn.flatMap((one) => ends.get(one) ?? []);
    const end = bring(name, awaited).catch((error: unknown) => {
      failure ??= { error };
      failing.abort();
      throw error;
    });
    ends.set(name, end);
  }
  await Promise.allSettled(ends.values());
  if (failure !== null) throw (failure as { readonly error: unknown }).error;
}
