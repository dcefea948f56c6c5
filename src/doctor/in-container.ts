import { existsSync, readFileSync } from "node:fs";
import { containerIdIn } from "../platform/docker/mountinfo.ts";

/** Whether this process runs in a container of Docker or Podman. A `/.dockerenv` says little: images of machines have it too. */
export function isInContainer(): boolean {
  return (
    existsSync("/run/.containerenv") || containerIdIn(readFileSync("/proc/self/mountinfo", "utf8")) !== null
  );
}
