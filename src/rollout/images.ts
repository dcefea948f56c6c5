import { parseSizeBytes } from "#config/values";
import {
  type ComposeOptions,
  complaintOf,
  composeCommand,
  loadModel,
  resolveDigests,
  runCompose,
} from "#platform/compose";
import {
  type Container,
  imageDirectories,
  inspectImage,
  isNamedByCommit,
  listContainers,
  splitReference,
  tagByCommit,
  tagImage,
} from "#platform/docker/containers";
import type { Engine } from "#platform/docker/engine";
import { hasEndedWell, isServing, withOwnHealth } from "#platform/docker/health";
import { spaceShortage } from "#platform/files";
import { checkedOutCommit } from "#platform/git";
import { type Argv, hasSucceeded } from "#platform/run-command";
import { ProblemError } from "#problems";
import type { Rollout, RolloutContext } from "./context.ts";
import { mayGoBack, type RolloutService, readProjectAround } from "./project.ts";
import { note, type RolloutStep, timed } from "./report.ts";
import {
  readVersions,
  type Version,
  type VersionImage,
  withReturnTo,
  withVersion,
  writeVersions,
} from "./state.ts";
import { badAnswerOf } from "./switch-traffic.ts";

const buildTimeoutMs = 60 * 60_000;

/**
 * Pulls and builds the images of the services and names them after the commit; in a roll back, gives those of the version their names
 * back. No container is touched: if this fails, everything serves as before.
 */
export async function prepareImages(
  rollout: RolloutContext,
  services: readonly RolloutService[],
): Promise<void> {
  const { target, project, version, withBuild } = rollout;
  const built = services.filter(({ isBuilt }) => isBuilt);
  if (version) await nameImages(rollout, services, version);
  const watched = version ? [] : await pinImages(rollout, services);
  const pulled = names(await toPull(rollout, services, watched));
  // Without a build, a service that has one can pull what CI has pushed.
  const options = withBuild ? ["--ignore-buildable"] : [];
  const pull = [...composeCommand(target), "pull", ...options, ...pulled] as const;
  if (pulled.length > 0) await runReported(rollout, "pull", pull, pulled);
  const madeHere = withBuild ? built.map(({ image }) => image) : [];
  const hookImages = services.flatMap((service) => (service.replicas > 0 ? service.hookImages : []));
  await pullMissing(rollout, new Set(hookImages.filter((image) => !madeHere.includes(image))));
  if (!withBuild || built.length === 0) return;
  // A worker may use the image that the app builds. Of two that build one image, the second could not be stored beside the first.
  const images = [...new Set(built.map(({ image }) => image))];
  const builders = images.flatMap(
    (image) => project.services.find((one) => one.hasBuild && one.image === image) ?? [],
  );
  await requireDiskSpace(rollout);
  await build(rollout, builders);
  await Promise.all(built.map((service) => tagBuilt(rollout, service)));
}

/** `build` of compose would build for every platform that the file names. As with `up`, the image is only for this machine. */
async function build(rollout: RolloutContext, builders: readonly RolloutService[]): Promise<void> {
  const isForMany = builders.some(({ hasManyPlatforms }) => hasManyPlatforms);
  const forThisMachine = (key: string, value: unknown) =>
    key === "platforms" && Array.isArray(value) && value.length > 1 ? undefined : value;
  const input = isForMany ? JSON.stringify(await loadModel(rollout), forThisMachine) : "";
  const target = { ...rollout.target, ...(isForMany && { files: ["-"] }) };
  const argv = [...composeCommand(target), "build", ...names(builders)] as const;
  await runReported(rollout, "build", argv, names(builders), input);
}

/**
 * With HOTPUSH_IMAGES, gives each watched image the name in the compose file to what its registry has now, pulled by the
 * digest: a tag that moves in between changes nothing. What stays back, as that variable says, keeps the image it has here.
 *
 * @returns the names of the watched images
 */
async function pinImages(
  rollout: RolloutContext,
  services: readonly RolloutService[],
): Promise<readonly string[]> {
  const { engine, env, report } = rollout;
  const [wanted, ...back] = (env.HOTPUSH_IMAGES ?? "").split(" ");
  const watched = wanted === "newest" ? watchedImages(services) : [];
  if (watched.length === 0) return watched;
  const images = (await resolveDigests(rollout, watched)).filter((image) => !back.includes(image));
  report({ event: "pinned", images });
  const pins = images.map((image) => {
    const [name = "", digest] = image.split("@");
    return { name, pinned: `${splitReference(name).repository}@${digest}` };
  });
  await pullMissing(rollout, new Set(pins.map(({ pinned }) => pinned)));
  for (const { name, pinned } of pins) await tagImage(engine, pinned, name);
  return watched;
}

/** Pulls those images that are not here, whatever services have them. */
async function pullMissing(rollout: RolloutContext, images: ReadonlySet<string>): Promise<void> {
  const here = await Promise.all([...images].map((image) => inspectImage(rollout.engine, image)));
  const missing = [...images].filter((_, index) => here[index] === null);
  if (missing.length === 0) return;
  const services = Object.fromEntries(missing.map((image, index) => [index, { image }]));
  const pull = ["docker", "compose", "--progress", "plain", "--file", "-", "pull"] as const;
  await runReported(rollout, "pull", pull, missing, JSON.stringify({ name: "images", services }));
}

/**
 * Missing images of what is started are always pulled before anything is touched; the others with `withPull`, and with
 * `pull_policy: always`, if this is no roll back.
 */
async function toPull(
  { engine, version, withBuild, withPull }: RolloutContext,
  services: readonly RolloutService[],
  watched: readonly string[],
): Promise<readonly RolloutService[]> {
  const isRun = ({ replicas, mode }: RolloutService) => replicas > 0 && !(version && mode.how === "run-once");
  const isPullable = ({ isBuilt, hasBuild }: RolloutService) =>
    withBuild ? !isBuilt : !version || !hasBuild;
  const pullable = services.filter((service) => isRun(service) && isPullable(service));
  const images = await Promise.all(pullable.map(({ image }) => inspectImage(engine, image)));
  const isAsked = ({ isBuilt, isAlwaysPulled, image }: RolloutService) =>
    (withPull || (isAlwaysPulled && version === null)) && !isBuilt && !watched.includes(image);
  return pullable.filter((service, index) => isAsked(service) || images[index] === null);
}

async function tagBuilt(rollout: RolloutContext, service: RolloutService): Promise<void> {
  const { engine, commit } = rollout;
  const image = await inspectImage(engine, service.image);
  if (image === null) {
    const detail = `The build succeeded, but there is no image ${service.image}.`;
    throw new ProblemError({ code: "build_failed", detail });
  }
  const tag = () => tagByCommit(engine, service.image, image.id, commit);
  await timed({ ...rollout, service }, "tag", tag);
}

async function runReported(
  rollout: RolloutContext,
  step: RolloutStep,
  argv: Argv,
  services: readonly string[],
  input: string = "",
): Promise<void> {
  const onLine = (line: string) => {
    if (line.trim()) rollout.report({ event: "output", step, line });
  };
  const run = async () => {
    const ending = await runCompose(rollout, argv, { timeoutMs: buildTimeoutMs, onLine, input });
    if (hasSucceeded(ending)) return;
    const detail = `The ${step} of ${services.join(", ")} failed: ${complaintOf(step, ending)}. No new container was started.`;
    const code = step === "pull" ? "image_pull_failed" : "build_failed";
    throw new ProblemError({ code, detail, evidence: ending.lastLines });
  };
  await timed(rollout, step, run, services.join(", "));
}

function names(services: readonly RolloutService[]): readonly string[] {
  return services.map(({ name }) => name);
}

/**
 * Gives the images of an earlier good version the names in the compose file. These keep the image they have: services
 * that are recreated and not built here (databases), because their data may not suit an older version; services that
 * others wait for, which a roll back does not run; and services whose image is named by a digest, which is reported.
 *
 * @throws ProblemError `no_previous_version` if an image was removed
 */
export async function nameImages(
  { engine, report }: Pick<Rollout, "engine" | "report">,
  services: readonly RolloutService[],
  version: Version,
): Promise<void> {
  const returning = services.flatMap((service) => {
    const image = version.images[service.name];
    if (!image && mayGoBack(service)) note({ report, service }, "stays: that version had no such service");
    return image && mayGoBack(service) ? [{ service, image, isPinned: service.image.includes("@") }] : [];
  });
  for (const { service, image, isPinned } of returning) {
    if (isPinned || (await inspectImage(engine, image.id)) !== null) continue;
    const detail = `The image ${image.tag} of ${service.name} is no longer here: deploy the commit ${version.commit} again instead.`;
    throw new ProblemError({ code: "no_previous_version", detail });
  }
  for (const { service, image, isPinned } of returning) {
    const { image: name, isBuilt } = service;
    if (!isPinned) await tagImage(engine, image.id, name);
    if (isBuilt || image.image === name) continue;
    // Without it, an operator who rolls out the same name again would wonder why nothing changes.
    const goesBack = `goes back to ${image.image}, which the name ${name} stands for here from now on. To get the other one again: hotpush rollout --pull`;
    const stays = `stays: the compose file names its image by the digest, ${name}`;
    note({ report, service }, isPinned ? stays : goesBack);
  }
}

const gibibyte = 1024 ** 3;

/**
 * Refuses to build if the disk would run full, because that would also stop the running version. A build needs 1 GiB, or the
 * size in HOTPUSH_MIN_FREE (`2048 MiB`).
 *
 * @throws ProblemError `disk_full` with the size that is needed
 */
export async function requireDiskSpace(on: Pick<RolloutContext, "engine" | "env">): Promise<void> {
  const text = on.env.HOTPUSH_MIN_FREE;
  const neededBytes = text ? parseSizeBytes(text) : gibibyte;
  if (neededBytes === null) {
    const detail = `HOTPUSH_MIN_FREE is "${text}", not a size such as "2 GiB".`;
    throw new ProblemError({ code: "configuration_invalid", detail });
  }
  const directories = await imageDirectories(on.engine);
  const shortage = directories.map((directory) => spaceShortage(directory, neededBytes)).find(Boolean);
  if (!shortage) return;
  const detail = `There is no room for a build. ${shortage} Nothing was built. Free some space (hotpush prune), or set HOTPUSH_MIN_FREE.`;
  throw new ProblemError({ code: "disk_full", detail });
}

/**
 * Gives each built image that serves a name by the time, unless it has one by a commit. Otherwise the next build would take its
 * last name, and containerd's store drops an image without a name, even if a container runs it. One that was dropped is reported.
 */
export async function nameServingImages(rollout: Rollout): Promise<void> {
  const { engine, project, containers, report } = rollout;
  const now = timeAsCommit(Date.now());
  for (const service of project.services.filter(({ isBuilt }) => isBuilt)) {
    const isRunning = (one: Container) => one.service === service.name && one.status === "running";
    for (const id of new Set(containers.filter(isRunning).map(({ image }) => image))) {
      const image = await inspectImage(engine, id);
      const risk = service.mode.how === "recreate" ? "; if the new version fails, it stays down" : "";
      const text = `runs an image that Docker has dropped, because a build by hand took its name. No rollback can restore it${risk}`;
      if (image === null) note({ report, service }, text);
      else if (!image.tags.some(isNamedByCommit)) await tagByCommit(engine, service.image, id, now);
    }
  }
}

/**
 * Records what serves now as a good version, for roll backs and for prune. `imagesNow` reads its images, which are reported:
 * in a roll back, some services have others than the version.
 *
 * @throws ProblemError `state_unusable`, which says that the version serves nevertheless
 */
export async function recordVersion(
  recorded: Pick<RolloutContext, "version" | "versionsPath" | "commit" | "report">,
  imagesNow: () => Promise<Version["images"]>,
): Promise<void> {
  const { version, versionsPath, commit, report } = recorded;
  const finishedAt = new Date().toISOString();
  const images = await imagesNow();
  try {
    const versions = await readVersions(versionsPath);
    const after = version
      ? withReturnTo(versions, version, finishedAt)
      : withVersion(versions, { commit, finishedAt, images });
    await writeVersions(versionsPath, after);
    const live = Object.entries(images).map(([service, { image, id }]) => ({ service, image, id }));
    report({ event: "version", images: live });
  } catch (error) {
    if (!(error instanceof ProblemError) || error.problem.code !== "state_unusable") throw error;
    const detail = `The version ${commit.slice(0, 12)} is rolled out, but it could not be recorded as a good one: ${error.message} Then roll out again: without that, it cannot be gone back to.`;
    throw new ProblemError({ code: "state_unusable", detail }, error);
  }
}

/**
 * Records what serves, if Hotpush sees a project for the first time, and all of it is healthy and answers well. Otherwise the first
 * build would leave these images nameless, prune would remove them, and no roll back could use them. The version is named after the
 * time.
 *
 * @returns that version; null if nothing is recorded
 * @throws ProblemError `state_unusable`
 */
export async function recordFirstVersion(
  rollout: Pick<Rollout, "engine" | "project" | "report" | "versionsPath">,
): Promise<Version | null> {
  const { engine, project, versionsPath } = rollout;
  const present = await withOwnHealth(engine, await listContainers(engine, project.name));
  const containers = present.filter((one) => !hasEndedWell(one));
  const known = project.services.filter(mayGoBack).flatMap((service) => {
    const mine = containers.filter((container) => container.service === service.name);
    return mine.length > 0 ? [{ service, serving: mine.filter(isServing) }] : [];
  });
  if (known.length === 0 || known.some(({ serving }) => serving.length === 0)) return null;
  // What was started before it had the label need not know that URL.
  const hasLabel = ({ labels }: Container) => "hotpush.check" in labels;
  const answers = known
    .filter(({ serving }) => serving.every(hasLabel))
    .map(({ service: { checkUrl } }) => checkUrl && badAnswerOf(checkUrl));
  if ((await Promise.all(answers)).some((bad) => bad !== null)) return null;
  const commit = timeAsCommit(Date.now());
  const images = await servingImages({ ...rollout, commit });
  if (known.some(({ service }) => !images[service.name])) return null;
  const version = { commit, images, finishedAt: new Date().toISOString() };
  await writeVersions(versionsPath, [version]);
  note(rollout, `what serves now is recorded as a good version, ${commit}: hotpush rollback brings it back`);
  return version;
}

/** The images that the services of a compose project run now, by service. */
export async function servingImages(on: Pick<Rollout, "engine" | "project" | "commit">) {
  const found = (await imagesInUse(on)).map(({ service, ...image }) => [service, image] as const);
  const images: Record<string, VersionImage> = Object.fromEntries(found.toReversed());
  return images;
}

/**
 * The images of a compose project's containers, each with its service. An old container that could not be removed may still be there:
 * serving ones come first, and the newest of those. Docker may not have checked a new one yet.
 */
export async function imagesInUse(on: Pick<Rollout, "engine" | "project" | "commit">) {
  const { engine, project, commit } = on;
  const containers = await withOwnHealth(engine, await listContainers(engine, project.name));
  const ordered = containers.toSorted(
    (one, other) => Number(isServing(other)) - Number(isServing(one)) || other.number - one.number,
  );
  const found = await Promise.all(ordered.map((container) => inspectImage(engine, container.image)));
  const isOfCommit = (name: string) => splitReference(name).tag.startsWith(commit.slice(0, 12));
  return ordered.flatMap(({ service, imageName }, index) => {
    const image = found[index];
    if (!image) return [];
    const byCommit = image.tags.filter(isNamedByCommit);
    const tag = byCommit.find(isOfCommit) ?? byCommit.at(-1) ?? imageName;
    return [{ service, image: imageName, id: image.id, tag }];
  });
}

/**
 * The commit that images and versions are named after: the one given with `--commit`, else the one checked out in
 * `directory`. DEPLOY_COMMIT counts only outside of git: it is the pushed commit, and the branch may have moved on
 * before the deploy script pulled.
 *
 * @returns 12 to 64 hexadecimal digits; if there is neither, twelve of the time
 */
export async function commitOf(
  directory: string,
  named: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const known = commitIn(named) ?? (await checkedOutCommit(directory, { env }));
  return known ?? commitIn(env.DEPLOY_COMMIT) ?? timeAsCommit(Date.now());
}

/** Twelve digits of a time, used in place of a commit outside of git. */
function timeAsCommit(atMs: number): string {
  return new Date(atMs).toISOString().replace(/\D/g, "").slice(2, 14);
}

function commitIn(text: string | undefined): string | null {
  return text !== undefined && /^[0-9a-f]{12,64}$/i.test(text) ? text.toLowerCase() : null;
}

/**
 * The names of the images that DEPLOY_IMAGES watches: those of services that are not built here and that a roll back can
 * bring back, so not of databases. A one-shot service or a worker gets the same image if it names the same. No CI pushes an
 * official image of Docker Hub, whose name has no slash, nor under a digest.
 */
export function watchedImages(services: readonly RolloutService[]): readonly string[] {
  const isOfCi = (image: string) => splitReference(image).repository.includes("/") && !image.includes("@");
  const watched = services.filter(
    (service) => mayGoBack(service) && !service.isBuilt && service.replicas > 0,
  );
  return [...new Set(watched.map(({ image }) => image).filter(isOfCi))];
}

/**
 * Finds the watched images of a project of which the registry has another one than what runs here. What does not run is not
 * looked at: somebody has stopped it.
 *
 * @returns each as `name@digest`, with the registry's digest
 * @throws ProblemError `image_pull_failed` if a registry does not say it, `compose_invalid`
 */
export async function findNewImages(
  options: ComposeOptions & { readonly engine: Engine },
): Promise<readonly string[]> {
  const { engine } = options;
  const { project } = await readProjectAround(options, await loadModel(options));
  const watched = watchedImages(project.services);
  if (watched.length === 0) return [];
  const resolved = await resolveDigests(options, watched);
  const containers = await listContainers(engine, project.name);
  const found: string[] = [];
  for (const image of resolved) {
    const [name = "", digest = ""] = image.split("@");
    const running = containers.filter(({ status, imageName }) => status === "running" && imageName === name);
    const images = await Promise.all(running.map((container) => inspectImage(engine, container.image)));
    const isOther = images.some((one) => !one?.digests.some((known) => known.endsWith(`@${digest}`)));
    if (isOther) found.push(image);
  }
  return found;
}
