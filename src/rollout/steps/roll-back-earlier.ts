import { type Container, listContainers } from "../../platform/docker/container.ts";
import type { RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { ServiceOutcome } from "../report/report.ts";
import { rollService } from "./roll-service.ts";

const dataMayNotSuit = "it was recreated, and its data may not suit the old version";

/**
 * If one service fails, those replaced before it go back to their old images by the same steps, without a build, so
 * that the serving versions belong together. Their image names have been restored already. Some stay new, with a note
 * on what to do: a service whose image has another name in the compose file now, and one that was recreated, because
 * a database may not go back.
 */
export async function rollBackEarlier(
  rollout: Rollout,
  services: readonly RolloutService[],
  outcomes: readonly ServiceOutcome[],
  old: ReadonlyMap<string, readonly Container[]>,
): Promise<void> {
  for (const { service: name, outcome } of outcomes.toReversed()) {
    const service = services.find((candidate) => candidate.name === name);
    if (!service || (outcome !== "rolled" && outcome !== "recreated")) continue;
    const before = old.get(name) ?? [];
    const obstacle = outcome === "recreated" ? dataMayNotSuit : renamed(service, before);
    const note = (text: string) => rollout.report({ event: "note", service: name, text });
    if (obstacle === null) await goBack(rollout, service, before, note);
    else note(stays(service, obstacle));
  }
}

/** Why an old image cannot run under the name in the compose file, or null. */
function renamed({ image }: RolloutService, old: readonly Container[]): string | null {
  const names = new Set(old.map(({ imageName }) => imageName));
  return names.has(image) ? null : `its image was ${[...names].join(", ")} and is ${image} now`;
}

function stays({ name }: RolloutService, obstacle: string): string {
  const advice = `To go back, undo its change in the sources or the compose file, then: hotpush rollout ${name}`;
  return `stays at the new version, though another service failed: ${obstacle}. ${advice}`;
}

async function goBack(
  rollout: Rollout,
  service: RolloutService,
  old: readonly Container[],
  note: (text: string) => void,
): Promise<void> {
  try {
    const configHashes = (await rollout.configHashes).get(service.name) ?? [];
    const isChanged = old.some(({ configHash }) => !configHashes.includes(configHash));
    const configuration = isChanged ? ", with the configuration that the compose file has now" : "";
    note(`goes back to the old version, because another service failed${configuration}`);
    const present = await listContainers(rollout.engine, rollout.project.name, service.name);
    await rollService(rollout, service, present);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    note(`could not go back and serves the new version: ${reason}`);
  }
}
