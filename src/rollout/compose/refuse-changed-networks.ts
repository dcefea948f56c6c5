import { createHash } from "node:crypto";
import { rehearsed } from "../../platform/compose/commands.ts";
import {
  type ComposeOptions,
  complaintOf,
  hasEndedWell,
  linesOf,
  runCompose,
} from "../../platform/compose/run-compose.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import type { Argv } from "../../platform/run-command.ts";
import { ProblemError } from "../../problems.ts";
import type { Network, Service } from "./project.ts";

const rehearsalTimeoutMs = 60_000;
/** By which compose knows its networks again: what they are called in the file, and what they were made from. */
const keyLabel = "com.docker.compose.network";
const hashLabel = "com.docker.compose.config-hash";

type Asking = ComposeOptions & { readonly engine: Engine; readonly project: { readonly name: string } };

/**
 * Refuses to start containers of `service` where compose would make a network of it anew. From 2.31 on it does that on each
 * `up`, whatever its options: it stops all containers of the service, and then cannot remove the network, because other
 * services are in it. Where the hash on the network is not that of the file, compose itself is asked what it would do, since
 * another version may make the hash otherwise.
 *
 * @param argv the command by which they are to be started
 * @throws ProblemError `network_changed`, or `container_start_failed` where compose does not say
 */
export async function refuseChangedNetworks(rollout: Asking, service: Service, argv: Argv): Promise<void> {
  for (const { network, isRenamed } of await doubted(rollout, service)) {
    if (isRenamed || (await wouldStop(rollout, service, argv))) throw changed(network);
  }
}

/** The networks of the service that may be others than the file says. */
async function doubted({ engine, project }: Asking, { networks }: Service) {
  const filters = encodeURIComponent(
    JSON.stringify({ label: [`com.docker.compose.project=${project.name}`] }),
  );
  const present: readonly Listed[] = JSON.parse(
    (await engine.get(`/networks?filters=${filters}`)).toString(),
  );
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

/** As compose makes it: of its own JSON of the network, in which Go writes some characters as numbers. */
function hashOf({ definition }: Network): string {
  const escaped = JSON.stringify(definition).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return createHash("sha256").update(escaped).digest("hex");
}

/** New containers are to come beside those there are: in `DRY-RUN MODE -  Container shop-app-1  Stopping` one would go. */
async function wouldStop(rollout: Asking, { name }: Service, argv: Argv): Promise<boolean> {
  const lines: string[] = [];
  const onLine = (line: string) => lines.push(line);
  const ending = await runCompose(rollout, rehearsed(argv), { timeoutMs: rehearsalTimeoutMs, onLine });
  if (lines.some((line) => /\bContainer\b.*\bStopp/.test(line))) return true;
  if (hasEndedWell(ending)) return false;
  throw new ProblemError({
    code: "container_start_failed",
    detail: `${name} was not started: ${complaintOf("start", ending)}, when it was asked what it would do.`,
    evidence: linesOf(ending),
  });
}

function changed({ name }: Network): ProblemError {
  const detail = `The network ${name} has to be made anew, because its part of the compose file changed. That takes away all of its containers for some seconds, and no roll-out can spare them that. In a quiet moment, on the machine: docker compose down && docker compose up -d. No container was touched.`;
  return new ProblemError({ code: "network_changed", detail });
}
