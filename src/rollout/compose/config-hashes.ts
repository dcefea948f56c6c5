import { hashCommand } from "../../platform/compose/commands.ts";
import type { ComposeModel } from "../../platform/compose/model.ts";
import type { Container } from "../../platform/docker/container.ts";
import { askCompose } from "./load-model.ts";
import type { Surroundings } from "./run-compose.ts";

/** For each service, the `config-hash` labels that compose may have given to containers of it that are up to date. */
export type ConfigHashes = ReadonlyMap<string, readonly string[]>;

/**
 * Asks compose for the hashes of a project's services, and for no more than it takes to know which of its `containers`
 * are up to date.
 *
 * Before compose 2.29.3, the hash holds the dependencies, and not where compose was told to leave them alone
 * (`up --no-deps`), as it is here. So a container that somebody else started may have another hash.
 * See https://github.com/docker/compose/issues/12069
 *
 * @throws ProblemError `compose_invalid` with what compose says
 */
export async function configHashes(
  surroundings: Surroundings,
  model: ComposeModel,
  containers: readonly Container[],
): Promise<ConfigHashes> {
  const alone = readHashes(await askCompose(surroundings, hashCommand(), withoutDependencies(model)));
  const isKnown = ({ service, configHash }: Container) =>
    model.services[service]?.depends_on === undefined || alone.get(service)?.includes(configHash);
  if (containers.every(isKnown)) return alone;
  const whole = readHashes(await askCompose(surroundings, hashCommand(), JSON.stringify(model)));
  return new Map([...alone].map(([name, hashes]) => [name, [...hashes, ...(whole.get(name) ?? [])]]));
}

function withoutDependencies(model: ComposeModel): string {
  const services = Object.entries(model.services).map(([name, { depends_on, ...rest }]) => [name, rest]);
  return JSON.stringify({ ...model, services: Object.fromEntries(services) });
}

/** Of lines such as `app 9f2c`. */
function readHashes(text: string): ConfigHashes {
  const pairs = text.split("\n").map((line) => line.trim().split(/\s+/, 2));
  return new Map(pairs.flatMap(([name, hash]) => (name && hash ? [[name, [hash]]] : [])));
}
