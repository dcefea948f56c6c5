import { join, relative } from "node:path";
import type { ComposeModel } from "../../platform/compose/model.ts";
import type { Container } from "../../platform/docker/container.ts";
import { ProblemError } from "../../problems.ts";

/**
 * Refuses a compose file in which `~` or `${HOME}` means another directory than when the containers were started, as
 * in a container of Hotpush or under sudo. With an empty directory instead of its own, a database would start without
 * its data.
 *
 * @param home the home directory that compose is given
 * @param projectDirectory mounts from in there are relative to the file, and move with it
 * @param containers those of the project
 * @throws ProblemError `compose_invalid` with the line to change
 */
export function refuseOtherHome(
  { services }: ComposeModel,
  { home, projectDirectory }: { readonly home: string | undefined; readonly projectDirectory: string },
  containers: readonly Container[],
): void {
  if (!home) return;
  for (const [service, { volumes = [] }] of Object.entries(services)) {
    const binds = volumes.filter(({ type, source }) => type === "bind" && !isIn(projectDirectory, source));
    const atHome = binds.filter(({ source }) => isIn(home, source));
    if (atHome.length === 0) continue;
    const ofService = containers.filter((container) => container.service === service);
    for (const { source = "", target } of atHome) {
      const there = elsewhere(ofService, target, source, relative(home, source));
      if (there !== null) throw otherHome(service, target, source, there);
    }
  }
}

function isIn(directory: string, path = ""): boolean {
  return path.startsWith(join(directory, "/"));
}

/**
 * The source of a container's mount that ends in `path` in another home directory, or null if one has `source`
 * itself.
 */
function elsewhere(
  containers: readonly Container[],
  target: string,
  source: string,
  path: string,
): string | null {
  const mounts = containers.flatMap(({ mounts }) => mounts).filter((mount) => mount.target === target);
  if (mounts.some((mount) => mount.source === source)) return null;
  return mounts.find((mount) => mount.type === "bind" && mount.source.endsWith(`/${path}`))?.source ?? null;
}

function otherHome(service: string, target: string, source: string, there: string): ProblemError {
  const detail = `${service} has ${there} at ${target}, and by the compose file it would be ${source}: "~" and \${HOME} mean another directory here. Write the whole path: ${there}:${target}. Nothing was changed.`;
  return new ProblemError({ code: "compose_invalid", detail });
}
