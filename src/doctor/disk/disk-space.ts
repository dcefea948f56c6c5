import { existsSync, type StatsFs, statfsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { formatSize } from "../../config/size.ts";
import { nearestExisting } from "../../platform/files.ts";
import { type CheckFinding, type Fault, okUnless, problem, quote } from "../check.ts";
import type { DoctorContext } from "../context.ts";

interface Place {
  readonly content: string;
  readonly path: string;
  readonly neededBytes: number;
  /** Frees space there without losing anything that is needed, or shows what takes most. */
  readonly command: string;
}

/** A checkout, a log or a database needs a few files at once; a build of a web app makes tens of thousands. */
const neededFiles = 1_000;

/** `hotpush rollout` does not build images with less free space (docs/rollout.md, HOTPUSH_MIN_FREE). */
export async function checkDiskSpace(context: DoctorContext): Promise<CheckFinding> {
  const byDevice = Map.groupBy(await placesOf(context), ({ path }) => statSync(nearestExisting(path)).dev);
  const places = [...byDevice.values()].flatMap(([first]) => first ?? []);
  const disks = places.map((place) => ({ place, stats: statfsSync(nearestExisting(place.path)) }));
  const free = disks.map(({ place, stats }) => `${formatSize(stats.bavail * stats.bsize)} at ${place.path}`);
  return okUnless(
    disks.flatMap(({ place, stats }) => faultOf(place, stats) ?? []),
    free.join(", "),
  );
}

/** In order of need: of the places on one disk, the first counts. */
async function placesOf(context: DoctorContext): Promise<readonly Place[]> {
  const { statePath, repoPath, scriptEnv } = context;
  const docker = await context.engine();
  const root = docker.kind === "answers" && existsSync(docker.rootPath) ? docker.rootPath : null;
  const prune = "docker builder prune --force && docker image prune --force";
  const place = (content: string, path: string, mebibytes: number, command = largestIn(path)): Place => ({
    ...{ content, path, command },
    neededBytes: mebibytes * 1024 ** 2,
  });
  return [
    ...(root === null ? [] : [place("images", root, 1024, prune)]),
    place("the repository", repoPath, 256),
    place("the state", statePath, 64),
    place("logs of scripts", scriptEnv.TMPDIR ?? tmpdir(), 16),
  ];
}

/** A person has to choose what to remove: this shows the largest. */
function largestIn(path: string): string {
  return `du -ax --block-size=1K ${quote(nearestExisting(path))} | sort -nr | head -n 10`;
}

function faultOf({ content, neededBytes, command, ...place }: Place, stats: StatsFs): Fault | null {
  const path = nearestExisting(place.path);
  const bytes = stats.bavail * stats.bsize;
  if (bytes < neededBytes) {
    const text = `Only ${formatSize(bytes)} are free at ${path}, for ${content}; at least ${formatSize(neededBytes)} are needed. Free some space.`;
    return problem(text, command);
  }
  // File systems that allocate inodes on demand report 0 of 0.
  if (stats.files === 0 || stats.ffree >= neededFiles) return null;
  const text = `Only ${stats.ffree} more files can be created at ${path}, for ${content}: it has no inodes left. Remove directories with many small files.`;
  return problem(text, `du -x --inodes ${quote(path)} | sort -nr | head -n 10`);
}
