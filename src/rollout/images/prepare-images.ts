import { buildCommand, pullCommand } from "../../platform/compose/commands.ts";
import { complaintOf, hasEndedWell, linesOf, runCompose } from "../../platform/compose/run-compose.ts";
import type { Container } from "../../platform/docker/container.ts";
import { inspectImage, tagByCommit } from "../../platform/docker/image.ts";
import type { Argv } from "../../platform/run-command.ts";
import { ProblemError } from "../../problems.ts";
import type { Service } from "../compose/project.ts";
import type { RolloutContext } from "../context.ts";
import { type Step, timed } from "../report/report.ts";
import { requireDiskSpace } from "./disk-guard.ts";

const buildTimeoutMs = 60 * 60_000;

export interface Preparation {
  readonly commit: string;
  readonly withBuild: boolean;
  readonly withPull: boolean;
  readonly running: ReadonlyMap<string, readonly Container[]>;
  /** Called where the disk is too full for the build. */
  readonly prune: () => Promise<void>;
}

/**
 * Pulls and builds the images of `services` and names them after the commit. No container is touched: where this
 * fails, everything serves as before.
 */
export async function prepareImages(
  rollout: RolloutContext,
  services: readonly Service[],
  preparation: Preparation,
): Promise<void> {
  const built = services.filter(({ isBuilt }) => isBuilt);
  const pulled = await toPull(rollout, services, preparation);
  await keepRunningImages(rollout, built, preparation.running);
  if (pulled.length > 0) {
    await runTold(rollout, "pull", pullCommand(rollout.target, names(pulled)), names(pulled));
  }
  if (!preparation.withBuild || built.length === 0) return;
  const builders = buildersOf(rollout.project.services, built);
  await requireDiskSpace(rollout, builders, preparation.prune);
  await runTold(rollout, "build", buildCommand(rollout.target, names(builders)), names(builders));
  for (const service of built) await tagBuilt(rollout, service, preparation.commit);
}

/** The services with a `build` for the images of `built`: a worker may take the image that the app builds. */
function buildersOf(all: readonly Service[], built: readonly Service[]): readonly Service[] {
  return all.filter((service) => service.hasBuild && built.some(({ image }) => image === service.image));
}

/** Images that are not here yet are pulled before anything is touched; the others only where that was asked for. */
async function toPull(
  { engine }: RolloutContext,
  services: readonly Service[],
  { withBuild, withPull }: Preparation,
): Promise<readonly Service[]> {
  // Without a build, one that only takes another one's image can be pulled for both where it is not here.
  const pullable = services.filter(({ isBuilt, hasBuild }) => (withBuild ? !isBuilt : !hasBuild));
  const images = await Promise.all(pullable.map(({ image }) => inspectImage(engine, image)));
  return pullable.filter(({ isBuilt }, index) => (withPull && !isBuilt) || images[index] === null);
}

/** An image that no roll-out has named yet would be nameless after the build, and the next prune would take it. */
async function keepRunningImages(
  { engine }: RolloutContext,
  built: readonly Service[],
  running: ReadonlyMap<string, readonly Container[]>,
): Promise<void> {
  for (const service of built) {
    for (const { image } of running.get(service.name) ?? []) {
      const known = await inspectImage(engine, image);
      const isNamed = known?.tags.some((tag) => tag !== service.image && tag !== `${service.image}:latest`);
      if (known && !isNamed) await tagByCommit(engine, service.image, image, image.replace("sha256:", ""));
    }
  }
}

async function tagBuilt({ engine, report }: RolloutContext, service: Service, commit: string): Promise<void> {
  const image = await inspectImage(engine, service.image);
  if (image === null) {
    throw new ProblemError({
      code: "build_failed",
      detail: `The build ended well, but there is no image ${service.image}.`,
    });
  }
  await timed(
    report,
    service.name,
    "tag",
    () => tagByCommit(engine, service.image, image.id, commit),
    (tag) => tag,
  );
}

async function runTold(
  rollout: RolloutContext,
  step: Step,
  argv: Argv,
  services: readonly string[],
): Promise<void> {
  const onLine = (line: string) => {
    if (line.trim()) rollout.report({ event: "output", step, line });
  };
  const run = async () => {
    const ending = await runCompose(rollout, argv, { timeoutMs: buildTimeoutMs, onLine });
    if (hasEndedWell(ending)) return;
    const text = `The ${step} of ${services.join(", ")} failed: ${complaintOf(step, ending)}. No container was touched.`;
    throw new ProblemError({
      code: step === "pull" ? "image_pull_failed" : "build_failed",
      detail: text,
      evidence: linesOf(ending),
    });
  };
  await timed(rollout.report, null, step, run, () => services.join(", "));
}

function names(services: readonly Service[]): readonly string[] {
  return services.map(({ name }) => name);
}
