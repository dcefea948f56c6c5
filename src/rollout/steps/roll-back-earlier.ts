import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { type Container, listContainers } from "../engine/container.ts";
import type { ServiceOutcome } from "../report/report.ts";
import { rollService } from "./roll-service.ts";

/**
 * When one service fails, those that were replaced before it go back to their old images by the same steps, without a
 * build, so that the versions that serve belong together. Their image names have been given back already. Services
 * that were recreated stay new: a database may not go back.
 */
export async function rollBackEarlier(
  rollout: Rollout,
  services: readonly Service[],
  outcomes: readonly ServiceOutcome[],
  old: ReadonlyMap<string, readonly Container[]>,
): Promise<void> {
  const rolled = outcomes.filter(({ outcome }) => outcome === "rolled").toReversed();
  for (const { service: name } of rolled) {
    const service = services.find((candidate) => candidate.name === name);
    if (!service || !canGoBack(service, old.get(name) ?? [])) continue;
    try {
      rollout.report({
        event: "note",
        service: name,
        text: "goes back to the old version, because another service failed",
      });
      await rollService(rollout, service, await listContainers(rollout.engine, rollout.project.name, name));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      rollout.report({
        event: "note",
        service: name,
        text: `could not go back and serves the new version: ${reason}`,
      });
    }
  }
}

function canGoBack(service: Service, old: readonly Container[]): boolean {
  return old.some(({ imageName }) => imageName === service.image);
}
