import { dirname } from "node:path";
import { inheritedOwner, replaceFile } from "#platform/files";
import { readForeignFile } from "#platform/foreign-files";
import { ProblemError } from "#problems";
import { makeStateDirectory, stateFault } from "./lock.ts";

/** The result of a good roll-out: the image of each service, by the id that no later build can change. */
export interface Version {
  readonly commit: string;
  readonly finishedAt: string;
  readonly images: Readonly<Record<string, VersionImage>>;
  /** The one-shot services that ran to their end at this commit. */
  readonly ran?: readonly string[];
  /** It was rolled back from: a roll back without a commit skips it. */
  readonly wasLeft?: boolean;
}

export interface VersionImage {
  /** The name in the compose file. */
  readonly image: string;
  readonly id: string;
  /** The name by commit that keeps the image; the same as `image` if it was not built here. */
  readonly tag: string;
}

/** How many good versions are recorded. Prune keeps the images of fewer. */
const remembered = 20;
/** A project of fifty services needs a tenth of it. */
const longestBytes = 1024 ** 2;

/**
 * The good versions of a project, oldest first; empty if there is no file yet.
 *
 * @throws ProblemError `state_unusable`
 */
export async function readVersions(path: string): Promise<readonly Version[]> {
  try {
    const text = readForeignFile(path, { mostBytes: longestBytes }).toString();
    const { versions }: { readonly versions: readonly Version[] } = JSON.parse(text);
    return versions;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    if (!(error instanceof SyntaxError)) throw stateFault(path, error);
    const detail = `${path} is damaged (${error.message}). Put it back from a backup, or remove it: then no version from before is known to roll back to, and prune removes their images.`;
    throw new ProblemError({ code: "state_unusable", detail }, error);
  }
}

/**
 * Replaces the file as a whole, synced to disk before it returns.
 *
 * @throws ProblemError `state_unusable`
 */
export async function writeVersions(path: string, versions: readonly Version[]): Promise<void> {
  const text = `${JSON.stringify({ versions: versions.slice(-remembered) }, null, 2)}\n`;
  try {
    await makeStateDirectory(dirname(path));
    replaceFile(path, text, { mode: 0o600, owner: inheritedOwner(dirname(path)) });
  } catch (error) {
    throw stateFault(path, error);
  }
}

/** Adds a good version. If the last one has the same images, the new one replaces it. */
export function withVersion(versions: readonly Version[], version: Version): readonly Version[] {
  const last = versions.at(-1);
  return [...(last && sameImages(last, version) ? versions.slice(0, -1) : versions), version];
}

/**
 * The good version to go back to: the last one whose images differ from those of the newest, or the one of `commit`
 * (any number of its first digits).
 */
export function previousVersion(versions: readonly Version[], commit?: string): Version | null {
  const current = versions.at(-1);
  if (!current) return null;
  const others = versions
    .slice(0, -1)
    .toReversed()
    .filter((version) => version.commit.startsWith(commit ?? "") && !sameImages(version, current));
  // A commit has several versions if its images changed.
  const kept = others.find(({ wasLeft }) => !wasLeft) ?? null;
  return kept ?? (commit === undefined ? null : (others[0] ?? null));
}

/**
 * The same, for a roll-out that goes back.
 *
 * @throws ProblemError `no_previous_version` with the good versions there are
 */
export function goodVersion(versions: readonly Version[], commit?: string): Version {
  const version = previousVersion(versions, commit);
  if (version) return version;
  throw new ProblemError({ code: "no_previous_version", detail: noGoodVersion(versions, commit) });
}

/** Says that there is no good version to go back to, and lists those there are. */
export function noGoodVersion(versions: readonly Version[], commit?: string): string {
  const known = versions.map((version) => version.commit.slice(0, 12)).join(", ") || "none";
  const wanted = commit === undefined ? "before the present one" : `of the commit ${commit}`;
  return `There is no good version ${wanted} to go back to. Good versions, oldest first: ${known}. Nothing was changed.`;
}

/** The versions after a roll back to `target`: it is the newest again, and those after it are marked as left. */
export function withReturnTo(
  versions: readonly Version[],
  target: Version,
  finishedAt: string,
): readonly Version[] {
  // Compared by content: the file was read again since `target` was chosen.
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

/** The error if an image of the version to go back to was removed meanwhile. */
export function imageIsGone(service: string, { tag }: VersionImage, { commit }: Version): ProblemError {
  const detail = `The image ${tag} of ${service} is no longer here: deploy the commit ${commit} again instead.`;
  return new ProblemError({ code: "no_previous_version", detail });
}
