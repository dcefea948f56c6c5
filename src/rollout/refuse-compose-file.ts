import { createHash } from "node:crypto";
import { join, relative } from "node:path";
import { type ComposeOptions, complaintOf, rehearsed, runCompose } from "#platform/compose";
import type { ComposeModel } from "#platform/compose-model";
import type { Container } from "#platform/docker/containers";
import { type Engine, filteredBy, getJson } from "#platform/docker/engine";
import { type Argv, hasSucceeded } from "#platform/run-command";
import { ProblemError } from "#problems";
import type { Network, RolloutService } from "./project.ts";

const rehearsalTimeoutMs = 60_000;
/** The labels by which compose recognizes its networks: the name in the file, and the hash of the definition. */
const keyLabel = "com.docker.compose.network";
const hashLabel = "com.docker.compose.config-hash";

type Asking = ComposeOptions & { readonly engine: Engine; readonly project: { readonly name: string } };

/**
 * Refuses to start containers of `service` if compose would recreate one of its networks. From 2.31 on, each `up`
 * does that, whatever its options: it stops all containers of the service, and then cannot remove the network,
 * because other services use it. If the hash on the network differs from that of the file, a dry run of compose
 * decides, since other versions may compute the hash differently.
 *
 * @param argv the command that would start them
 * @throws ProblemError `network_changed`, or `container_start_failed` if the dry run fails
 */
export async function refuseChangedNetworks(
  rollout: Asking,
  service: RolloutService,
  argv: Argv,
): Promise<void> {
  for (const { network, isRenamed } of await doubted(rollout, service)) {
    if (isRenamed || (await wouldStop(rollout, service, argv))) throw changed(network);
  }
}

/** The networks of the service that may differ from the file. */
async function doubted({ engine, project }: Asking, { networks }: RolloutService) {
  const filter = filteredBy({ label: [`com.docker.compose.project=${project.name}`] });
  const present = await getJson<readonly Listed[]>(engine, `/networks?${filter}`);
  return networks.flatMap((network) => {
    const found = present.filter(({ Labels }) => Labels?.[keyLabel] === network.key);
    const own = found.find(({ Name }) => Name === network.name);
    if (own === undefined) return found.length > 0 ? [{ network, isRenamed: true }] : [];
    const hash = own.Labels?.[hashLabel];
    return hash !== undefined && hash !== hashOf(network) ? [{ network, isRenamed: false }] : [];
  });
}

interface Listed {
  readonly Name: string;
  readonly Labels: Readonly<Record<string, string>> | null;
}

/** Computed as compose does: over its own JSON of the network, in which Go escapes some characters. */
function hashOf({ definition }: Network): string {
  const escaped = JSON.stringify(definition).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return createHash("sha256").update(escaped).digest("hex");
}

/**
 * New containers start beside the present ones: `DRY-RUN MODE -  Container shop-app-1  Stopping` means that one would
 * stop.
 */
async function wouldStop(rollout: Asking, { name }: RolloutService, argv: Argv): Promise<boolean> {
  const lines: string[] = [];
  const onLine = (line: string) => lines.push(line);
  const ending = await runCompose(rollout, rehearsed(argv), { timeoutMs: rehearsalTimeoutMs, onLine });
  if (lines.some((line) => /\bContainer\b.*\bStopp/.test(line))) return true;
  if (hasSucceeded(ending)) return false;
  throw new ProblemError({
    code: "container_start_failed",
    detail: `${name} was not started: ${complaintOf("start", ending)} in a dry run.`,
    evidence: ending.lastLines,
  });
}

function changed({ name }: Network): ProblemError {
  const detail = `The network ${name} must be recreated, because its part of the compose file changed. All of its containers are down for some seconds meanwhile; no roll-out can avoid that. In a quiet moment, on the machine: docker compose down && docker compose up -d. No container was touched.`;
  return new ProblemError({ code: "network_changed", detail });
}

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
  const isIn = (directory: string, path: string) => path.startsWith(join(directory, "/"));
  for (const [service, { volumes = [] }] of Object.entries(services)) {
    const mounted = containers.filter((one) => one.service === service).flatMap(({ mounts }) => mounts);
    for (const { type, source = "", target } of volumes) {
      if (type !== "bind" || !isIn(home, source) || isIn(projectDirectory, source)) continue;
      const there = mounted.filter((mount) => mount.target === target).map((mount) => mount.source);
      const other = there.find((path) => path.endsWith(`/${relative(home, source)}`));
      if (other === undefined || there.includes(source)) continue;
      const detail = `${service} has ${other} at ${target}, and by the compose file it would be ${source}: "~" and \${HOME} mean another directory here. Write the whole path: ${other}:${target}. Nothing was changed.`;
      throw new ProblemError({ code: "compose_invalid", detail });
    }
  }
}
