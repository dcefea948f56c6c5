import { type Container, listContainers } from "#platform/docker/containers";
import { hasEndedWell, isServing } from "#platform/docker/health";
import { inspectImage, isNamedByCommit, splitReference, tagByCommit } from "#platform/docker/images";
import { checkedOutCommit } from "#platform/git";
import { ProblemError } from "#problems";
import type { Rollout, RolloutContext } from "./context.ts";
import { mayGoBack } from "./plan.ts";
import type { RolloutService } from "./project.ts";
import { note } from "./report.ts";
import {
  readVersions,
  type Version,
  type VersionImage,
  withReturnTo,
  withVersion,
  writeVersions,
} from "./versions.ts";

/**
 * Records what serves now as a good version, for roll backs and for prune. `imagesNow` reads its images; `ran` are
 * the one-shot services that ran to their end at this commit.
 *
 * @throws ProblemError `state_unusable`, which says that the version serves nevertheless
 */
export async function recordVersion(
  { version, versionsPath, commit }: Pick<RolloutContext, "version" | "versionsPath" | "commit">,
  imagesNow: () => Promise<Version["images"]>,
  ran: readonly string[] = [],
): Promise<void> {
  const finishedAt = new Date().toISOString();
  const images = version?.images ?? (await imagesNow());
  try {
    const versions = await readVersions(versionsPath);
    const after = version
      ? withReturnTo(versions, version, finishedAt)
      : withVersion(versions, { commit, finishedAt, images, ran });
    await writeVersions(versionsPath, after);
  } catch (error) {
    if (!(error instanceof ProblemError) || error.problem.code !== "state_unusable") throw error;
    const detail = `The version ${commit.slice(0, 12)} serves, but it could not be recorded as a good one: ${error.message} Then roll out again: without that, it cannot be gone back to.`;
    throw new ProblemError({ code: "state_unusable", detail }, error);
  }
}

/**
 * Records what serves, if Hotpush sees a project for the first time and all of it is healthy. Otherwise the first
 * build would leave these images nameless, prune would remove them, and no roll back could use them. The version is named after the
 * time at which its newest container was created.
 *
 * @throws ProblemError `state_unusable`
 */
export async function recordFirstVersion(
  rollout: Pick<Rollout, "engine" | "project" | "report" | "current" | "versionsPath">,
): Promise<void> {
  const { engine, current, versionsPath } = rollout;
  const serving = current === null ? await servingContainers(rollout) : [];
  if (serving.length === 0) return;
  const commit = timeAsCommit(Math.max(...serving.map(({ container }) => container.createdAtMs)));
  for (const { service, container } of serving)
    if (service.isBuilt) await tagByCommit(engine, service.image, container.image, commit);
  const images = await servingImages({ ...rollout, commit });
  await writeVersions(versionsPath, [{ commit, images, finishedAt: new Date().toISOString() }]);
  note(rollout, `what serves now is recorded as a good version, ${commit}: hotpush rollback brings it back`);
}

interface Serving {
  readonly service: RolloutService;
  readonly container: Container;
}

/** The serving containers of all services that a roll back would restore; none if one of these services is down. */
async function servingContainers({
  engine,
  project,
}: Pick<Rollout, "engine" | "project">): Promise<readonly Serving[]> {
  const all = await listContainers(engine, project.name);
  const known = project.services.filter(mayGoBack).flatMap((service) => {
    const mine = all.filter((container) => container.service === service.name);
    return mine.every(hasEndedWell) ? [] : [{ service, containers: mine.filter(isServing) }];
  });
  if (known.some(({ containers }) => containers.length === 0)) return [];
  return known.flatMap(({ service, containers }) => containers.map((container) => ({ service, container })));
}

/** The images that the services of a compose project run now, by service. */
export async function servingImages({
  engine,
  project,
  commit,
}: Pick<Rollout, "engine" | "project" | "commit">): Promise<Version["images"]> {
  const images: Record<string, VersionImage> = {};
  // An old container that could not be removed may still be there: serving ones come first, and the newest of
  // those.
  const containers = (await listContainers(engine, project.name)).toSorted(
    (one, other) => Number(isServing(other)) - Number(isServing(one)) || other.number - one.number,
  );
  for (const { service, image: imageId, imageName } of containers) {
    const image = await inspectImage(engine, imageId);
    if (!image || images[service]) continue;
    const byCommit = image.tags.filter(isNamedByCommit);
    const isOfCommit = (name: string) => splitReference(name).tag.startsWith(commit.slice(0, 12));
    const tag = byCommit.find(isOfCommit) ?? byCommit.at(-1) ?? imageName;
    images[service] = { image: imageName, id: image.id, tag };
  }
  return images;
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
  const known =
    commitIn(named) ?? (await checkedOutCommit(directory, { env })) ?? commitIn(env.DEPLOY_COMMIT);
  return known ?? timeAsCommit(Date.now());
}

/** Twelve digits of a time, used in place of a commit outside of git. */
function timeAsCommit(atMs: number): string {
  return new Date(atMs).toISOString().replace(/\D/g, "").slice(2, 14);
}

function commitIn(text: string | undefined): string | null {
  return text !== undefined && /^[0-9a-f]{12,64}$/i.test(text) ? text.toLowerCase() : null;
}
