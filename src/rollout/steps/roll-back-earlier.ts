import { inspectImage, tagImage } from "../../platform/docker/image.ts";
import type { RolloutService } from "../compose/project.ts";
import {
  type Containers,
  containersOf,
  onService,
  type Rollout,
  type RunningContainers,
  type ServiceRollout,
} from "../context.ts";
import { note, type ServiceOutcome } from "../report/report.ts";
import { createCompany } from "../side-by-side/company.ts";
import { rollService } from "./roll-service.ts";

const dataMayNotSuit = "it was recreated, and its data may not suit the old version";

/**
 * If one service fails, the running images get their names back, and those replaced before it go back to their old
 * images by the same steps, without a build, so that the serving versions belong together. Some stay new, with a note
 * on what to do: a service whose image has another name in the compose file now, and one that was recreated, because
 * a database may not go back.
 *
 * @param running the containers of each service before the roll-out
 * @param outcomes of the services that did not fail
 */
export async function rollBackEarlier(
  rollout: Rollout,
  running: RunningContainers,
  outcomes: readonly ServiceOutcome[],
): Promise<void> {
  await restoreImageNames(rollout, running, outcomes);
  for (const { service: name, outcome } of outcomes.toReversed()) {
    const service = rollout.services.find((candidate) => candidate.name === name);
    if (!service || (outcome !== "rolled" && outcome !== "recreated")) continue;
    const old = running.get(name) ?? [];
    const obstacle = outcome === "recreated" ? dataMayNotSuit : renamed(service, old);
    const on = onService(rollout, service);
    if (obstacle === null) await goBack(on, old);
    else note(on, stays(service, obstacle));
  }
}

/**
 * Gives the running images their names back. Otherwise a later `docker compose up`, or a restart of
 * the machine with it, would start the version that failed. A recreated service stays new, and its image keeps the
 * name: otherwise the next roll-out would put the old image over the new data. For the same reason, a one-shot
 * service that ran keeps its new image's name, unless another service shares it.
 */
export async function restoreImageNames(
  { engine, services }: Pick<Rollout, "engine" | "services">,
  running: RunningContainers,
  outcomes: readonly ServiceOutcome[],
): Promise<void> {
  const outcomeOf = ({ name }: RolloutService) => outcomes.find(({ service }) => service === name)?.outcome;
  const kept = services.filter((service) => outcomeOf(service) === "recreated").map(({ image }) => image);
  const returning = services.filter(
    (service) => !kept.includes(service.image) && outcomeOf(service) !== "ran",
  );
  for (const service of returning) {
    const old = (running.get(service.name) ?? []).find(({ imageName }) => imageName === service.image);
    if (!old || service.image.includes("@")) continue;
    const named = await inspectImage(engine, service.image).catch(() => null);
    if (named !== null && named.id !== old.image)
      await tagImage(engine, old.image, service.image).catch(() => {});
  }
}

/** Why an old image cannot run under the name in the compose file, or null. */
function renamed({ image }: RolloutService, old: Containers): string | null {
  const names = new Set(old.map(({ imageName }) => imageName));
  return names.has(image) ? null : `its image was ${[...names].join(", ")} and is ${image} now`;
}

function stays({ name }: RolloutService, obstacle: string): string {
  const advice = `To go back, undo its change in the sources or the compose file, then: hotpush rollout ${name}`;
  return `stays at the new version, though another service failed: ${obstacle}. ${advice}`;
}

async function goBack(on: ServiceRollout, old: Containers): Promise<void> {
  try {
    const configHashes = (await on.configHashes).get(on.service.name) ?? [];
    const isChanged = old.some(({ configHash }) => !configHashes.includes(configHash));
    const configuration = isChanged ? ", with the configuration that the compose file has now" : "";
    note(on, `goes back to the old version, because another service failed${configuration}`);
    const company = await createCompany(on, new AbortController().signal);
    // It served before, and a guard would only hold up the others.
    const unguarded = { ...on.service, guardMs: 0 };
    await rollService({ ...on, company, service: unguarded }, await containersOf(on));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    note(on, `could not go back and serves the new version: ${reason}`);
  }
}
