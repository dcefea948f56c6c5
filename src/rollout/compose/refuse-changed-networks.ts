import { createHash } from "node:crypto";
import { ProblemError } from "../../problems.ts";
import type { Engine } from "../engine/engine.ts";
import { rehearseUpCommand } from "./compose.ts";
import type { ComposeModel } from "./compose-model.ts";
import type { Project, Service } from "./project.ts";
import { runCompose, type Surroundings } from "./run-compose.ts";

const rehearsalTimeoutMs = 60_000;
/** By which compose knows again what a network was made from. */
const hashLabel = "com.docker.compose.config-hash";

/**
 * Refuses a compose file by which a network of services that are rolled out would be made anew. Compose from 2.31 on does
 * that on each `up`, whatever its options: it stops all containers of the service that is named, and then cannot remove the
 * network, because other services are in it. Compose itself is asked what it would do, where the hash on the network is not
 * that of the file: other versions may make it otherwise.
 *
 * @param services those that are to be rolled out
 * @throws ProblemError `network_changed`
 */
export async function refuseChangedNetworks(
  engine: Engine,
  surroundings: Surroundings,
  model: ComposeModel,
  project: Project,
): Promise<void> {
  const rolled = project.services.filter(isRolled);
  const doubted = await doubtedNetworks(engine, model);
  const affected = rolled.filter(({ name }) => usesAny(model, name, doubted));
  if (affected.length === 0) return;
  const lines: string[] = [];
  const argv = rehearseUpCommand(
    surroundings.target,
    affected.map(({ name }) => name),
  );
  await runCompose(surroundings, argv, { timeoutMs: rehearsalTimeoutMs, onLine: (line) => lines.push(line) });
  const network = doubted.find((name) => lines.some((line) => isRemoved(name, line)));
  if (network === undefined) return;
  const detail = `The network ${network} has to be made anew, because its part of the compose file changed. That takes away all of its containers for some seconds, and no roll-out can spare them that. In a quiet moment, on the machine: docker compose up -d. Nothing was changed.`;
  throw new ProblemError({ code: "network_changed", detail });
}

/** Those that are recreated are stopped anyway, and brought back where that fails. */
function isRolled({ replacement: { how } }: Service): boolean {
  return how === "roll" || how === "scale";
}

/** Networks of the project that may be others than the file says, by their names in the engine. */
async function doubtedNetworks(
  engine: Engine,
  { name, networks = {} }: ComposeModel,
): Promise<readonly string[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: [`com.docker.compose.project=${name}`] }));
  const answer = (await engine.get(`/networks?filters=${filters}`)).toString();
  const present: readonly {
    readonly Name: string;
    readonly Labels: Readonly<Record<string, string>> | null;
  }[] = JSON.parse(answer);
  const hashes = new Map(present.map(({ Name, Labels }) => [Name, Labels?.[hashLabel]]));
  return Object.values(networks).flatMap((network) => {
    const hash = hashes.get(network.name);
    return hash === undefined || hash === hashOf(network) ? [] : [network.name];
  });
}

/** As compose makes it: of its own JSON of the network, in which Go writes some characters as numbers. */
function hashOf(network: object): string {
  const escaped = JSON.stringify(network).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return createHash("sha256").update(escaped).digest("hex");
}

function usesAny(
  { services, networks = {} }: ComposeModel,
  service: string,
  names: readonly string[],
): boolean {
  const used = Object.keys(services[service]?.networks ?? {});
  return used.some((key) => names.includes(networks[key]?.name ?? ""));
}

/** `DRY-RUN MODE -  Network shop_default  Removed` */
function isRemoved(network: string, line: string): boolean {
  return line.includes(` ${network} `) && /\bNetwork\b.*\bRemov/.test(line);
}
