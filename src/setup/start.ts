import { machineProject } from "../config/machine-part.ts";
import { type ComposeRun, runCompose } from "../platform/compose/run-compose.ts";
import { type Container, discardContainers, listContainers } from "../platform/docker/container.ts";
import { evidenceOf } from "../platform/docker/diagnosis.ts";
import type { Engine } from "../platform/docker/engine.ts";
import { isServing } from "../platform/docker/health.ts";
import { inspectImage } from "../platform/docker/image.ts";
import { type CommandEnding, hasSucceeded } from "../platform/run-command.ts";
import { CommandError } from "../problems.ts";
import type { MachinePart } from "./server.ts";

/** The services of the machine part on their engine. */
export interface MachineServices {
  readonly part: MachinePart;
  readonly engine: Engine;
  /** That of the person, who may have variables of other projects in it. */
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

/** How long a new container may take until it is healthy. */
const healthyWithinS = 90;
const readTimeoutMs = 60_000;
/** `receive` answers what it has begun to answer, and `run` ends its scripts, within this time. */
const longestGraceS = 15;

/**
 * Finds the services whose containers are not as their definition says, or do not run.
 *
 * @param composeText the definition, which may differ from the file
 * @param image the value of HOTPUSH_IMAGE
 * @throws CommandError if compose cannot read it
 */
export async function findOutdated(
  machine: MachineServices,
  composeText: string,
  image: string,
): Promise<readonly string[]> {
  const read = async (...args: readonly string[]) => {
    const ending = await compose(machine, ["--file", "-", "config", ...args], {
      ...{ timeoutMs: readTimeoutMs, input: composeText },
      variables: { HOTPUSH_IMAGE: image },
    });
    if (hasSucceeded(ending)) return ending.output;
    throw new CommandError(`Compose cannot read compose.yaml. It says: ${ending.lastLines.at(-1)}`);
  };
  const [hashes, model] = await Promise.all([read("--hash", "*"), read("--format", "json")]);
  const { services } = JSON.parse(model) as {
    readonly services: Readonly<Record<string, { image?: string }>>;
  };
  const wanted = hashes.split("\n").map((line) => line.trim().split(/\s+/));
  const isOutdated = await Promise.all(
    wanted.map(async ([service = "", hash = ""]) => {
      const name = services[service]?.image;
      const id = name && (await inspectImage(machine.engine, name))?.id;
      const containers = await listMachineContainers(machine, service);
      return !containers.some((one) => isServing(one) && one.configHash === hash && one.image === id);
    }),
  );
  return wanted.flatMap(([service = ""], index) => (isOutdated[index] ? [service] : []));
}

/**
 * Replaces the container of a service as its files say: the old one stops before the new one starts.
 *
 * @returns null, or why the new one is not healthy: what compose says, and the last lines of the container
 */
export async function recreate(machine: MachineServices, service: string): Promise<readonly string[] | null> {
  // A container that is not healthy gets a fresh start, also if its definition is the same.
  const args = ["--force-recreate", "--wait", "--wait-timeout", String(healthyWithinS), service];
  const ending = await compose(machine, [...upAlone, ...args], { timeoutMs: upTimeoutMs });
  return hasSucceeded(ending) ? null : await complaintOf(machine, service, ending);
}

/**
 * Replaces the container of a service of which two may run: the old one stops when the new one is healthy. If that never
 * is, it is removed.
 *
 * @returns as `recreate`
 */
export async function rotate(machine: MachineServices, service: string): Promise<readonly string[] | null> {
  const old = await listMachineContainers(machine, service);
  if (!old.some(isServing)) return await recreate(machine, service);
  const scale = ["--no-recreate", "--scale", `${service}=${old.length + 1}`];
  const args = [...scale, "--wait", "--wait-timeout", String(healthyWithinS), service];
  const ending = await compose(machine, [...upAlone, ...args], { timeoutMs: upTimeoutMs });
  const complaint = hasSucceeded(ending) ? null : await complaintOf(machine, service, ending);
  const isOld = ({ id }: Container) => old.some((one) => one.id === id);
  const added = (await listMachineContainers(machine, service)).filter((one) => !isOld(one));
  await discardContainers(machine.engine, complaint === null ? old : added, longestGraceS);
  return complaint;
}

const upAlone = ["up", "--detach", "--no-deps", "--no-build"];
/** The first time, Caddy's image is pulled. */
const upTimeoutMs = (healthyWithinS + 210) * 1_000;
const shownLines = 3;
/** What compose is about to do, as ` Container hotpush-run-1  Waiting`. */
const progressLine = /^ ?(?:Container|Network|Volume|Image) /;

async function complaintOf(
  machine: MachineServices,
  service: string,
  { lastLines, kind }: CommandEnding,
): Promise<readonly string[]> {
  const telling = lastLines.filter((line) => !progressLine.test(line)).slice(-shownLines);
  const said = telling.length > 0 ? telling : [`docker compose: ${kind}`];
  const failed = (await listMachineContainers(machine, service)).findLast((one) => !isServing(one));
  if (failed === undefined) return said;
  return [...said, ...(await evidenceOf(machine.engine, failed, [`/containers/${failed.id}`]))];
}

/** The containers of a service, running or not. */
export function listMachineContainers(
  { engine }: MachineServices,
  service: string,
): Promise<readonly Container[]> {
  return listContainers(engine, machineProject, service);
}

/** The person's shell may have values for variables of the machine part's `.env`; those of the file count. */
function compose(
  { part, env, signal }: MachineServices,
  args: readonly string[],
  { variables, ...run }: ComposeRun & { readonly variables?: Readonly<Record<string, string>> },
): Promise<CommandEnding> {
  const own = Object.fromEntries(Object.keys(part.env).map((name) => [name, undefined]));
  const { path, composeFile } = part.files;
  const files = args[0] === "--file" ? [] : ["--file", composeFile];
  const target = { projectDirectory: path, files: [], projectName: machineProject };
  const named = ["--progress", "plain", "--project-directory", path, "--project-name", machineProject];
  const options = { target, env: { ...env, ...own, ...variables }, signal, lockDescriptor: undefined };
  return runCompose(options, ["docker", "compose", ...named, ...files, ...args], run);
}
