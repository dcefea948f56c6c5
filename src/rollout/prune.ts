import { formatSize } from "#config/values";
import { type Image, inspectImage, isNamedByCommit, splitReference } from "#platform/docker/containers";
import { type Engine, EngineRefusal, filteredBy, getJson, readJson } from "#platform/docker/engine";
import { note, type ReportScope, timed } from "./report.ts";
import { readVersions, type Version, type VersionImage, writeVersions } from "./state.ts";

/** The newest version, and `count` good ones before it. */
export function keptVersions(versions: readonly Version[], count: number): readonly Version[] {
  const current = versions.at(-1);
  if (!current) return [];
  const earlier = versions.slice(0, -1).filter(({ wasLeft }) => !wasLeft);
  return [...(count === 0 ? [] : earlier.slice(-count)), current];
}

/** Prunes while the new version is watched. A failure is only reported. */
export async function pruneBeside(scope: ReportScope, work: () => Promise<Pruned>): Promise<void> {
  try {
    await timed(scope, "prune", work, ({ removed, cacheBytes }) => {
      const images = removed.join(", ") || "nothing";
      return `${images} removed, ${formatSize(cacheBytes)} of build cache freed`;
    });
  } catch (error) {
    note(scope, `prune did not end: ${error instanceof Error ? error.message : error}`);
  }
}

/** A compose project as prune sees it. */
export interface PrunedProject {
  readonly name: string;
  /** The names of its images in the compose file, in all profiles. */
  readonly images: readonly string[];
}

export interface PruneRequest {
  readonly engine: Engine;
  readonly project: PrunedProject;
  readonly versionsPath: string;
  /** How many good versions before the present one keep their images. */
  readonly keep?: number;
  /** Images in use that no container on this machine shows. */
  readonly inUse?: readonly Pick<VersionImage, "id" | "tag">[];
  /** Aborted to leave the build cache, which can take minutes. */
  readonly signal?: AbortSignal | undefined;
}

export interface Pruned {
  readonly removed: readonly string[];
  /** How much build cache was freed. */
  readonly cacheBytes: number;
}

/** The default. */
export const keptByDefault = 2;

/** Build cache that was not used for a week. Younger cache makes the next build fast. */
const cacheAge = "168h";
/** Removing many gigabytes of cache takes minutes on a slow disk. */
const cachePruneMs = 600_000;

/**
 * Removes what roll-outs of this project left: images that no container has and no kept version needs, nameless ones,
 * and old build cache. Images of other projects are never touched; `docker image prune` would remove those.
 */
export async function prune(request: PruneRequest): Promise<Pruned> {
  const { engine, project, versionsPath, keep = keptByDefault, inUse = [], signal } = request;
  const versions = await readVersions(versionsPath);
  const kept = keptVersions(versions, keep);
  const images = await projectImages(engine, project, versions);
  const keptImages = [...inUse, ...kept.flatMap((version) => Object.values(version.images))];
  const keptIds = await neededIds(engine, project, keptImages);
  const keptTags = new Set(keptImages.map(({ tag }) => tag));
  const removed: string[] = [];
  for (const image of images) {
    for (const name of namesToRemove(image, project, keptIds, keptTags))
      if (await removeImage(engine, name)) removed.push(name);
  }
  if (versions.length > 0) await writeVersions(versionsPath, kept);
  return { removed, cacheBytes: await pruneBuildCache(engine, signal) };
}

/** Images that compose built for this project, and those that earlier versions of it ran. */
async function projectImages(engine: Engine, project: PrunedProject, versions: readonly Version[]) {
  const filter = filteredBy({ label: [`com.docker.compose.project=${project.name}`] });
  const built = await getJson<readonly { readonly Id: string }[]>(engine, `/images/json?all=0&${filter}`);
  const recorded = versions.flatMap((version) => Object.values(version.images).map(({ id }) => id));
  const ids = new Set([...built.map(({ Id }) => Id), ...recorded]);
  const images = await Promise.all([...ids].map((id) => inspectImage(engine, id)));
  return images.filter((image) => image !== null);
}

/** Images of any container, running or not, of the compose file as it is now, and of the versions to keep. */
async function neededIds(engine: Engine, { images }: PrunedProject, kept: PruneRequest["inUse"] = []) {
  const containers = await getJson<readonly { ImageID: string }[]>(engine, "/containers/json?all=1");
  const named = await Promise.all(images.map((image) => inspectImage(engine, image)));
  const ids = [...named.filter((image) => image !== null), ...kept].map(({ id }) => id);
  return new Set([...containers.map(({ ImageID }) => ImageID), ...ids]);
}

/**
 * An image that is needed loses only the commit names that no kept version has, and never its last name. Any other
 * image loses all names that roll-outs or the compose file gave it; a name that somebody else gave keeps it.
 */
export function namesToRemove(
  image: Pick<Image, "id" | "tags">,
  project: PrunedProject,
  keptIds: ReadonlySet<string>,
  keptTags: ReadonlySet<string>,
): readonly string[] {
  const repositories = new Set(project.images.map((name) => splitReference(name).repository));
  const isOurs = (name: string) => {
    const { repository, tag } = splitReference(name);
    if (repositories.has(repository)) return true;
    // The service may have left the compose file: compose names what it builds after the project.
    const isOfProject = ["-", "_"].some((separator) => repository.startsWith(project.name + separator));
    return isOfProject && (tag === "latest" || isNamedByCommit(name));
  };
  const isByCommit = (tag: string) => isOurs(tag) && isNamedByCommit(tag);
  if (keptIds.has(image.id)) {
    const surplus = image.tags.filter((tag) => isByCommit(tag) && !keptTags.has(tag));
    return surplus.length < image.tags.length ? surplus : surplus.slice(1);
  }
  return image.tags.length === 0 ? [image.id] : image.tags.filter(isOurs);
}

/** Never by force: an image that a new container uses stays. */
async function removeImage(engine: Engine, name: string): Promise<boolean> {
  try {
    await engine.delete(`/images/${encodeURIComponent(name)}`);
    return true;
  } catch (error) {
    if (error instanceof EngineRefusal && (error.status === 404 || error.status === 409)) return false;
    throw error;
  }
}

async function pruneBuildCache(engine: Engine, signal: AbortSignal | undefined): Promise<number> {
  const path = `/build/prune?${filteredBy({ until: [cacheAge] })}`;
  const answer = await engine.post(path, undefined, cachePruneMs, signal);
  return readJson<{ readonly SpaceReclaimed?: number }>(answer).SpaceReclaimed ?? 0;
}
