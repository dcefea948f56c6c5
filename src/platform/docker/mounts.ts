import { existsSync, readFileSync, realpathSync } from "node:fs";

/**
 * After a restart, the engine has a new socket, but a container keeps the old one that was mounted into it until it
 * is restarted too. The kernel marks such a file with `//deleted` after its name in /proc/self/mountinfo.
 *
 * @returns the command for the host that gives this container the new socket; null if the socket at `path` is current
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

/** Whether this process runs in a container of Docker or Podman. A `/.dockerenv` proves nothing: some machines' images have it. */
export function isInContainer(): boolean {
  return (
    existsSync("/run/.containerenv") || containerIdIn(readFileSync("/proc/self/mountinfo", "utf8")) !== null
  );
}

/** The container id in the source of `/etc/hostname`: `…/containers/<64 digits>/hostname`. */
export function containerIdIn(mountInfo: string): string | null {
  return /\/containers\/([0-9a-f]{64})\/hostname /.exec(mountInfo)?.[1] ?? null;
}

/** Whether all of `points` are mounted in this process's file system. If not, it runs in another container. */
export function hasMounts(mountInfo: string, points: readonly string[]): boolean {
  const known = new Set(mountInfo.split("\n").map((line) => line.split(" ")[4]));
  return points.every((point) => known.has(point.replaceAll(" ", "\\040")));
}

/** Used if DOCKER_HOST is not set. */
export const defaultDockerHost = "unix:///var/run/docker.sock";

/** The path of the socket that DOCKER_HOST names; null if it names something else, such as a TCP port. */
export function dockerSocketPath(dockerHost: string): string | null {
  return dockerHost.startsWith("unix://") ? dockerHost.slice("unix://".length) : null;
}
