import { type Engine, EngineRefusal, neededApi } from "../../platform/docker/engine.ts";
import { commitTag, inspectImage, splitReference } from "../../platform/docker/image.ts";
import { keptVersions, readVersions, type Version, type VersionImage, writeVersions } from "../versions.ts";

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
  /** Images that are in use beyond what containers here show. */
  readonly inUse?: readonly Pick<VersionImage, "id" | "tag">[];
}

export interface Pruned {
  readonly removed: readonly string[];
  readonly freedBytes: number;
}

/** Where nobody says how many. */
export const keptByDefault = 2;

/** Build cache that nobody used for a week; younger cache makes the next build fast. */
const cacheAge = "168h";
/** A cache of many gigabytes on a slow disk takes its time. */
const cachePruneMs = 600_000;

/**
 * Removes what roll-outs of this project left: images that no container has and no kept version needs, nameless ones,
 * and old build cache. Images of other projects are never touched, which is why `docker image prune` is not used.
 */
export async function prune({
  engine,
  project,
  versionsPath,
  keep = keptByDefault,
  inUse = [],
}: PruneRequest): Promise<Pruned> {
  const versions = await readVersions(versionsPath);
  const kept = keptVersions(versions, keep);
  const beforeBytes = await layersBytes(engine);
  const images = await projectImages(engine, project, versions);
  const keptImages = [...inUse, ...kept.flatMap((version) => Object.values(version.images))];
  const keptIds = await neededIds(engine, project, keptImages);
  const keptTags = new Set(keptImages.map(({ tag }) => tag));
  const removed: string[] = [];
  for (const image of images) {
    for (const name of namesToRemove(image, project, keptIds, keptTags)) {
      if (await removeImage(engine, name)) removed.push(name);
    }
  }
  const freedBytes = beforeBytes - (await layersBytes(engine)) + (await pruneBuildCache(engine));
  if (versions.length > 0) await writeVersions(versionsPath, kept);
  return { removed, freedBytes: Math.max(0, freedBytes) };
}

interface ProjectImage {
  readonly id: string;
  readonly tags: readonly string[];
}

/** Images that compose built for this project, and those that earlier versions of it ran. */
async function projectImages(
  engine: Engine,
  project: PrunedProject,
  versions: readonly Version[],
): Promise<readonly ProjectImage[]> {
  const filters = encodeURIComponent(
    JSON.stringify({ label: [`com.docker.compose.project=${project.name}`] }),
  );
  const listed: readonly { readonly Id: string; readonly RepoTags: readonly string[] | null }[] = JSON.parse(
    (await engine.get(`/images/json?all=0&filters=${filters}`)).toString(),
  );
  const built = listed.map(({ Id, RepoTags }) => ({
    id: Id,
    tags: (RepoTags ?? []).filter((tag) => tag !== "<none>:<none>"),
  }));
  const recorded = new Set(versions.flatMap((version) => Object.values(version.images).map(({ id }) => id)));
  const pulled = await Promise.all([...recorded].map((id) => inspectImage(engine, id)));
  return [
    ...built,
    ...pulled.filter((image) => image !== null && !built.some(({ id }) => id === image.id)),
  ].filter((image) => image !== null);
}

/** Images of any container, running or not, of what the compose file names now, and of the versions to keep. */
async function neededIds(
  engine: Engine,
  project: PrunedProject,
  kept: readonly { readonly id: string }[],
): Promise<ReadonlySet<string>> {
  const containers: readonly { readonly ImageID: string }[] = JSON.parse(
    (await engine.get("/containers/json?all=1")).toString(),
  );
  const named = await Promise.all(project.images.map((image) => inspectImage(engine, image)));
  return new Set([
    ...containers.map(({ ImageID }) => ImageID),
    ...named.flatMap((image) => (image ? [image.id] : [])),
    ...kept.map(({ id }) => id),
  ]);
}

/**
 * Of an image that is needed, only commit names that no kept version knows go, and never its last name. Of one that is
 * not, all names go that roll-outs or the compose file gave; a name that somebody else gave keeps it.
 */
export function namesToRemove(
  image: ProjectImage,
  project: PrunedProject,
  keptIds: ReadonlySet<string>,
  keptTags: ReadonlySet<string>,
): readonly string[] {
  const repositories = new Set(project.images.map((name) => splitReference(name).repository));
  const isOurs = (name: string) => {
    const { repository, tag } = splitReference(name);
    if (repositories.has(repository)) return true;
    // Of a service that has left the compose file: compose names what it builds after the project.
    return repository.startsWith(`${project.name}-`) && (tag === "latest" || commitTag.test(tag));
  };
  const isByCommit = (tag: string) => isOurs(tag) && commitTag.test(splitReference(tag).tag);
  if (keptIds.has(image.id)) {
    const surplus = image.tags.filter((tag) => isByCommit(tag) && !keptTags.has(tag));
    return surplus.length < image.tags.length ? surplus : surplus.slice(1);
  }
  return image.tags.length === 0 ? [image.id] : image.tags.filter(isOurs);
}

/** Never by force: an image that a container has since taken stays. */
async function removeImage(engine: Engine, name: string): Promise<boolean> {
  try {
    await engine.delete(`/images/${encodeURIComponent(name)}`);
    return true;
  } catch (error) {
    if (error instanceof EngineRefusal && (error.status === 404 || error.status === 409)) return false;
    throw error;
  }
}

/** By the oldest version of the API that Hotpush works with: newer ones do not tell. It is never a reason to fail. */
async function layersBytes(engine: Engine): Promise<number> {
  try {
    const usage: { readonly LayersSize?: number } = JSON.parse(
      (await engine.get(`/v${neededApi}/system/df?type=image`)).toString(),
    );
    return usage.LayersSize ?? 0;
  } catch (error) {
    if (error instanceof EngineRefusal) return 0;
    throw error;
  }
}

async function pruneBuildCache(engine: Engine): Promise<number> {
  const filters = encodeURIComponent(JSON.stringify({ until: [cacheAge] }));
  const answer: { readonly SpaceReclaimed?: number } = JSON.parse(
    (await engine.post(`/build/prune?filters=${filters}`, undefined, cachePruneMs)).toString(),
  );
  return answer.SpaceReclaimed ?? 0;
}
