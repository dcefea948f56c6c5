import { existsSync, readFileSync } from "node:fs";

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
