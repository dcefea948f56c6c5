import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { commitTag, splitReference } from "../platform/docker/image.ts";
import { replaceFile } from "../platform/replace-file.ts";
import { ProblemError } from "../problems.ts";
import { stateFault } from "./state.ts";

/** What a good roll-out left: the image of each service, by the id that no later build can change. */
export interface Version {
  readonly commit: string;
  readonly finishedAt: string;
  readonly images: Readonly<Record<string, VersionImage>>;
  /** The one-shot services that ran to their end at this commit. */
  readonly ran?: readonly string[];
  /** It was rolled back from: roll back does not choose it by itself. */
  readonly wasLeft?: boolean;
}

export interface VersionImage {
  /** The name in the compose file. */
  readonly image: string;
  readonly id: string;
  /** The name by commit that keeps the image; the same as `image` where it was not built here. */
  readonly tag: string;
}

/** How many good versions are remembered. Prune keeps the images of fewer. */
const remembered = 20;

/**
 * The good versions of a project, oldest first; none where there is no file yet.
 *
 * @throws ProblemError `state_unusable`
 */
export async function readVersions(path: string): Promise<readonly Version[]> {
  try {
    const { versions }: { readonly versions: readonly Version[] } = JSON.parse(await readFile(path, "utf8"));
    return versions;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    if (error instanceof SyntaxError) throw damaged(path, error);
    throw stateFault(path, error);
  }
}

function damaged(path: string, error: SyntaxError): ProblemError {
  const detail = `${path} is damaged (${error.message}). Put it back from a backup, or remove it: then no version from before is known to roll back to, and prune removes their images.`;
  return new ProblemError({ code: "state_unusable", detail }, error);
}

/**
 * Replaces the file as a whole, on disk before it returns.
 *
 * @throws ProblemError `state_unusable`
 */
export async function writeVersions(path: string, versions: readonly Version[]): Promise<void> {
  const text = `${JSON.stringify({ versions: versions.slice(-remembered) }, null, 2)}\n`;
  try {
    await mkdir(dirname(path), { recursive: true });
    replaceFile(path, text, { mode: 0o600, owner: null });
  } catch (error) {
    throw stateFault(path, error);
  }
}

/** Adds a good version; one with the very same images takes the place of the last. */
export function withVersion(versions: readonly Version[], version: Version): readonly Version[] {
  const last = versions.at(-1);
  if (!last || !sameImages(last, version)) return [...versions, version];
  return [...versions.slice(0, -1), { ...version, images: namedAsBefore(version.images, last.images) }];
}

/** A stack may still run an image by a name that the next build takes: the name by commit that it has keeps it. */
function namedAsBefore(images: Version["images"], before: Version["images"]): Version["images"] {
  const isByCommit = (tag: string) => commitTag.test(splitReference(tag).tag);
  const named = Object.entries(images).map(([service, image]) => {
    const tag = before[service]?.tag ?? image.tag;
    return [service, !isByCommit(image.tag) && isByCommit(tag) ? { ...image, tag } : image] as const;
  });
  return Object.fromEntries(named);
}

/**
 * The good version to go back to: the last whose images are others than those of the newest, or the one of `commit`
 * (any number of its first digits).
 */
export function previousVersion(versions: readonly Version[], commit?: string): Version | null {
  const current = versions.at(-1);
  if (!current) return null;
  const earlier = versions.slice(0, -1).toReversed();
  const fits = (version: Version) =>
    commit === undefined ? !version.wasLeft : version.commit.startsWith(commit);
  return earlier.find((version) => fits(version) && !sameImages(version, current)) ?? null;
}

/** Says that there is no good version `before the present one`, or none of `commit`, and which ones there are. */
export function noGoodVersion(versions: readonly Version[], commit?: string): string {
  const known = versions.map((version) => version.commit.slice(0, 12)).join(", ") || "none";
  const wanted = commit === undefined ? "before the present one" : `of the commit ${commit}`;
  return `There is no good version ${wanted} to go back to. Good versions, oldest first: ${known}. Nothing was changed.`;
}

/** After going back to `target`: it is the newest again, and those after it were left. */
export function withReturnTo(
  versions: readonly Version[],
  target: Version,
  finishedAt: string,
): readonly Version[] {
  // By what it says: the file was read anew since `target` was chosen.
  const isTarget = ({ commit, finishedAt: at }: Version) =>
    commit === target.commit && at === target.finishedAt;
  const found = versions.findLastIndex(isTarget);
  const at = found === -1 ? versions.length : found;
  const left = versions.slice(at + 1).map((version) => ({ ...version, wasLeft: true }));
  const { wasLeft: _, ...good } = target;
  return [...versions.slice(0, at), ...left, { ...good, finishedAt }];
}

function sameImages(one: Version, other: Version): boolean {
  const ids = (version: Version) =>
    Object.entries(version.images)
      .map(([service, { id }]) => `${service} ${id}`)
      .sort()
      .join("\n");
  return ids(one) === ids(other);
}

/** The newest version, and `count` good ones before it. */
export function keptVersions(versions: readonly Version[], count: number): readonly Version[] {
  const current = versions.at(-1);
  if (!current) return [];
  const earlier = versions.slice(0, -1).filter(({ wasLeft }) => !wasLeft);
  return [...(count === 0 ? [] : earlier.slice(-count)), current];
}

/** A version cannot be gone back to where the image of one of its services was removed meanwhile. */
export function imageIsGone(service: string, { tag }: VersionImage, { commit }: Version): ProblemError {
  const detail = `The image ${tag} of ${service} is no longer here: deploy the commit ${commit} again instead.`;
  return new ProblemError({ code: "no_previous_version", detail });
}
