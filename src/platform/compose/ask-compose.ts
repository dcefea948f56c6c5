import { ProblemError } from "#problems";
import type { Container } from "../docker/container.ts";
import { type Argv, hasSucceeded, outputOf } from "../run-command.ts";
import { configCommand, hashCommand, imagesCommand } from "./commands.ts";
import type { ComposeModel } from "./model.ts";
import { composeProgram } from "./program.ts";
import { type ComposeOptions, runCompose } from "./run-compose.ts";

const readTimeoutMs = 60_000;

/** The version of compose, such as `2.24.0`; null if it is not installed or does not answer in time. */
export async function composeVersion(
  { env, user = null }: Pick<ComposeOptions, "env" | "user">,
  timeoutMs: number,
): Promise<string | null> {
  const output = await outputOf([...composeProgram(env), "version", "--short"], { env, user, timeoutMs });
  return output?.replace(/^v/, "") ?? null;
}

/**
 * Asks compose for the project with all variables resolved.
 *
 * @throws ProblemError `compose_invalid` with what compose says
 */
export async function loadModel(options: ComposeOptions): Promise<ComposeModel> {
  return JSON.parse(await askCompose(options, configCommand(options.target))) as ComposeModel;
}

/**
 * Asks compose for the names of all images that the project may run. The model leaves out services in inactive
 * profiles, but a cron job may run them at any time (`docker compose --profile backup run backup`).
 *
 * @throws ProblemError `compose_invalid` with what compose says
 */
export async function loadImageNames(options: ComposeOptions): Promise<readonly string[]> {
  const names = await askCompose(options, imagesCommand(options.target));
  return [...new Set(names.split("\n").filter(Boolean))];
}

/**
 * Runs a compose command that reads the project from its files, or from `input`.
 *
 * @returns its standard output
 * @throws ProblemError `compose_invalid` with what compose says
 */
async function askCompose(options: ComposeOptions, argv: Argv, input?: string): Promise<string> {
  const ending = await runCompose(options, argv, {
    timeoutMs: readTimeoutMs,
    ...(input === undefined ? {} : { input }),
  });
  if (hasSucceeded(ending)) return ending.output;
  throw new ProblemError({
    code: "compose_invalid",
    detail: `The compose file in ${options.target.projectDirectory} cannot be read.`,
    evidence: ending.lastLines,
  });
}

/** For each service, the `config-hash` labels that compose may have given to containers that are up to date. */
export type ConfigHashes = ReadonlyMap<string, readonly string[]>;

/**
 * Asks compose for the hashes of a project's services. Asks a second time only if the first answer does not decide
 * which of `containers` are up to date.
 *
 * Before compose 2.29.3, the hash covers the dependencies, except under `up --no-deps`, which Hotpush uses. So a
 * container that somebody else started may have another hash. See https://github.com/docker/compose/issues/12069
 *
 * @throws ProblemError `compose_invalid` with what compose says
 */
export async function configHashes(
  options: ComposeOptions,
  model: ComposeModel,
  containers: readonly Container[],
): Promise<ConfigHashes> {
  const alone = readHashes(await askCompose(options, hashCommand(), withoutDependencies(model)));
  const isKnown = ({ service, configHash }: Container) =>
    model.services[service]?.depends_on === undefined || alone.get(service)?.includes(configHash);
  if (containers.every(isKnown)) return alone;
  const whole = readHashes(await askCompose(options, hashCommand(), JSON.stringify(model)));
  return new Map([...alone].map(([name, hashes]) => [name, [...hashes, ...(whole.get(name) ?? [])]]));
}

function withoutDependencies(model: ComposeModel): string {
  const services = Object.entries(model.services).map(([name, { depends_on, ...rest }]) => [name, rest]);
  return JSON.stringify({ ...model, services: Object.fromEntries(services) });
}

/** Reads lines such as `app 9f2c`. */
function readHashes(text: string): ConfigHashes {
  const pairs = text.split("\n").map((line) => line.trim().split(/\s+/, 2));
  return new Map(pairs.flatMap(([name, hash]) => (name && hash ? [[name, [hash]]] : [])));
}
