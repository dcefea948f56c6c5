import { readFileSync, realpathSync } from "node:fs";
import { containerIdIn } from "./own-container.ts";

/**
 * Finds out whether the socket at `path` was mounted into this container and was replaced on the host since, as an
 * engine does that is started again: a container keeps the file it was given until it is started again itself. The
 * kernel tells by `//deleted` behind the file's name in /proc/self/mountinfo.
 *
 * @returns the command for the host that gives this container the new socket, or null where that is not the case
 */
export function restartForSocket(path: string): string | null {
  const mountInfo = readFileSync("/proc/self/mountinfo", "utf8");
  const id = containerIdIn(mountInfo);
  return id !== null && isReplaced(mountInfo, realPath(path)) ? `docker restart ${id.slice(0, 12)}` : null;
}

function isReplaced(mountInfo: string, path: string): boolean {
  const mounts = mountInfo.split("\n").map((line) => line.split(" "));
  return mounts.findLast(([, , , , point]) => point === path)?.[3]?.endsWith("//deleted") ?? false;
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
