import { serverComposeProject, serverServices } from "#config/server";
import { inspectImage, listContainers, tagImage } from "#platform/docker/containers";
import { nullIfMissing } from "#platform/docker/engine";
import { rewriteFile } from "#platform/files";
import { CommandError } from "#problems";
import { type PlannedFile, planFile, writePlanned } from "./planned-file.ts";
import { renewedFiles } from "./server-files.ts";
import {
  buildOwnImage,
  findOutdated,
  findOwnImage,
  holdDeployments,
  type OnWaiting,
  ownImage,
  type ServerContext,
  type StartFailure,
  startServices,
} from "./start.ts";

/** What this version of Hotpush would change of the server. */
export type PlannedUpgrade = Awaited<ReturnType<typeof planUpgrade>>;

/**
 * Plans an upgrade to the version of this Hotpush. Nothing is written.
 *
 * @throws CommandError if a file cannot be read, or compose cannot read compose.yaml
 */
export async function planUpgrade(context: ServerContext) {
  const { files, env } = context.server;
  const isOwn = /^hotpush:[^/]+$/.test(env.HOTPUSH_IMAGE ?? "");
  const image = isOwn ? ownImage : (env.HOTPUSH_IMAGE ?? ownImage);
  const planned = renewedFiles(image).map((file) => planFile(files.path, file));
  const isBuilt = image === ownImage && !(await findOwnImage(context.env))?.isOfTheseSources;
  const outdated = await findOutdated(context, { composeText: planned[0]?.text ?? "", image });
  // Before the image is built, its name may still be that of the one that runs.
  const isReplaced = (one: string) => outdated.includes(one) || (isBuilt && one !== serverServices.caddy);
  return {
    files: planned,
    /** HOTPUSH_IMAGE. A name that `init` did not choose stays: that image is a person's own. */
    image,
    /** Whether it must be built first. */
    isBuilt,
    /** The services that get a new container. */
    replaced: Object.values(serverServices).filter(isReplaced),
  };
}

/** The files that are replaced as a whole. A person may have changed them, so they are kept as `*.before`. */
export function copiedFiles({ files }: PlannedUpgrade): readonly PlannedFile[] {
  return files.filter(({ name, state }) => name !== ".env" && state === "changed");
}

export interface UpgradeEvents {
  readonly onWaiting: OnWaiting;
  readonly onReplaced: (services: readonly string[]) => void;
}

/** The new container of a service is not healthy. */
export interface WentBack extends StartFailure {
  /** The service whose old version is not healthy any more, or null. */
  readonly unrecovered: string | null;
}

/**
 * Builds the image, and when no deployment runs, writes the files and replaces the services that differ from them. If a new
 * container is not healthy, the files and the containers are the old ones again.
 *
 * @param context.signal gives up while deployments run; later it has no effect
 * @returns null, or why the old version runs again
 * @throws CommandError if the image cannot be built, or `run` cannot be asked; or if `run` stopped meanwhile, or the person left:
 * then nothing was changed
 */
export async function upgradeServer(
  context: ServerContext,
  plan: PlannedUpgrade,
  events: UpgradeEvents,
): Promise<WentBack | null> {
  const { server, engine, env } = context;
  // From the first file on: a signal would leave the server between two versions.
  const withoutSignal = { server, engine, env };
  const { files, image } = plan;
  const oldImage = server.env.HOTPUSH_IMAGE ?? image;
  const [running] = await listContainers(engine, serverComposeProject, serverServices.run);
  // The build may give the name of the old image to the new one, and containerd's store drops an image without a name.
  const oldImageId = (running && (await inspectImage(engine, running.image))?.id) ?? null;
  if (oldImageId !== null) await tagImage(engine, oldImageId, keptName);
  let release: (() => void) | null = null;
  try {
    if (plan.isBuilt) await buildOwnImage(env);
    release = await holdDeployments(context, "hotpush upgrade", events.onWaiting);
    if (release === null) throw new CommandError("The upgrade was given up before anything was changed.");
    for (const { path, before } of copiedFiles(plan)) rewriteFile(`${path}.before`, before ?? "", path);
    for (const file of files) writePlanned(file);
    const failure = await replaceOutdated(withoutSignal, events.onReplaced);
    if (failure === null) return null;
    for (const { path, before, state } of files)
      if (state === "changed" && before !== null) rewriteFile(path, before);
    if (oldImageId !== null) await tagImage(engine, oldImageId, oldImage);
    const again = await replaceOutdated(withoutSignal, () => {});
    return { ...failure, unrecovered: again?.service ?? null };
  } finally {
    release?.();
    if (oldImageId !== null)
      await nullIfMissing(engine.delete(`/images/${encodeURIComponent(keptName)}`), [404, 409]);
  }
}

/** The old image has this name while an upgrade may need it. */
const keptName = "hotpush:before-upgrade";

async function replaceOutdated(
  context: ServerContext,
  onReplaced: UpgradeEvents["onReplaced"],
): Promise<StartFailure | null> {
  const outdated = await findOutdated(context);
  const isRun = (one: string) => one === serverServices.run;
  // The new `run` knows nothing of the hold, and its roll-outs need Caddy, so it comes last.
  for (const services of [outdated.filter((one) => !isRun(one)), outdated.filter(isRun)]) {
    const failure = await startServices(context, services);
    if (failure !== null) return failure;
    if (services.length > 0) onReplaced(services);
  }
  return null;
}
