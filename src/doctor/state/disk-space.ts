import { existsSync, type StatsFs, statfsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { formatSize } from "../../config/size.ts";
import { type Check, type Fault, judge, problem } from "../check.ts";
import { quote } from "../quote.ts";
import type { Scene } from "../scene.ts";
import { nearestThere } from "./nearest-there.ts";

interface Place {
  readonly what: string;
  readonly path: string;
  readonly neededBytes: number;
  /** What makes room there without losing anything that is needed. */
  readonly command: string;
}

const mebibyte = 1024 ** 2;

/** A checkout, a log or a database needs a few files at once; a build of a web app makes tens of thousands. */
const neededFiles = 1_000;

/** The engine's need is the least that `hotpush rollout` builds with (docs/rollout.md, HOTPUSH_MIN_FREE). */
export const diskSpaceCheck: Check = {
  id: "disk-space",
  group: "Disk",
  subject: "there is room for the state, the checkout, logs and images",
  async look(scene) {
    const places = await placesOf(scene);
    const seen = new Set<number>();
    const faults: Fault[] = [];
    const free: string[] = [];
    for (const place of places) {
      const path = nearestThere(place.path);
      const device = statSync(path).dev;
      const stats = statfsSync(path);
      const fault = faultOf(place, path, stats);
      if (fault && !seen.has(device)) faults.push(fault);
      if (!seen.has(device)) free.push(`${formatSize(stats.bavail * stats.bsize)} at ${place.path}`);
      if (fault || !seen.has(device)) seen.add(device);
    }
    return judge(faults, free.join(", "));
  },
};

async function placesOf({ statePath, repoPath, scriptEnv, engine }: Scene): Promise<readonly Place[]> {
  const docker = await engine();
  const root = docker.kind === "answers" && existsSync(docker.rootPath) ? docker.rootPath : null;
  const images = "docker builder prune --force && docker image prune --force";
  return [
    ...(root === null ? [] : [{ what: "images", path: root, neededBytes: 1024 * mebibyte, command: images }]),
    { what: "the repository", path: repoPath, neededBytes: 256 * mebibyte, command: largestIn(repoPath) },
    { what: "the state", path: statePath, neededBytes: 64 * mebibyte, command: largestIn(statePath) },
    {
      what: "logs of scripts",
      path: scriptEnv.TMPDIR ?? tmpdir(),
      neededBytes: 16 * mebibyte,
      command: largestIn(scriptEnv.TMPDIR ?? tmpdir()),
    },
  ];
}

/** What is to be removed there is for a person to say: the largest of it are shown. */
function largestIn(path: string): string {
  return `du -ax --block-size=1K ${quote(nearestThere(path))} | sort -nr | head -n 10`;
}

function faultOf(place: Place, path: string, { bavail, bsize, ffree, files }: StatsFs): Fault | null {
  const bytes = bavail * bsize;
  const command = place.command;
  if (bytes < place.neededBytes) {
    const least = formatSize(place.neededBytes);
    const text = `Only ${formatSize(bytes)} are free at ${path}, for ${place.what}; at least ${least} are needed. Make room.`;
    return problem(text, { command });
  }
  // File systems that make room for files as they come say 0 of 0.
  if (files === 0 || ffree >= neededFiles) return null;
  const text = `Only ${ffree} more files can be made at ${path}, for ${place.what}: it has no inodes left. Remove directories with many small files.`;
  return problem(text, { command: `du -x --inodes ${quote(path)} | sort -nr | head -n 10` });
}
