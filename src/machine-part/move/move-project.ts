import { machineProject, machineServices } from "../../config/machine-part.ts";
import { parseSubnet, type Subnet } from "../../config/subnet.ts";
import { NotRunningError, openHold } from "../../control/client.ts";
import {
  type Container,
  inspectContainer,
  listContainers,
  removeContainer,
} from "../../platform/docker/container.ts";
import { connectEngine, type Engine } from "../../platform/docker/engine.ts";
import { isServing } from "../../platform/docker/health.ts";
import { hasSucceeded } from "../../platform/run-command.ts";
import { CommandError, ProblemError } from "../../problems.ts";
import { upMachinePart } from "../engine.ts";
import type { MachinePart } from "../find.ts";
import { makeProjectNetwork } from "../networks.ts";
import { carryCertificates, carryHistory, writeLiveFiles } from "./carry-state.ts";
import { joinCaddy, joinProjectNetwork } from "./join-network.ts";
import type { OwnContainers } from "./old-containers.ts";
import { askSites, swapPorts } from "./swap-ports.ts";
import { waitUntilIdle } from "./wait-until-idle.ts";

export interface MoveOptions {
  readonly part: MachinePart;
  readonly project: string;
  /** Those that get requests from Caddy. */
  readonly services: readonly string[];
  /** The URLs that must answer as before. */
  readonly sites: readonly URL[];
  readonly env: NodeJS.ProcessEnv;
  /** Called with a sentence when a step begins. */
  readonly onStep: (text: string) => void;
  /** Writes the project's files of the machine part. */
  readonly writeProject: () => void;
  /** Undoes `writeProject`, and what else was changed of the machine part for this project. May be called twice. */
  readonly removeProject: () => void;
  /** Writes the files in the checkout. Called when the site answers. */
  readonly writeCheckout: () => void;
}

export type MoveEnding =
  /** `gapMs`: for how long nothing may have answered; null if no port changed hands. */
  | { readonly kind: "moved"; readonly gapMs: number | null; readonly imported: number }
  /** The old set-up serves as before. */
  | { readonly kind: "stayed"; readonly reason: string };

/**
 * Moves a project that has a Hotpush of its own to the machine part, whose files are there. Deployments wait meanwhile,
 * and the project's containers are not restarted. If anything fails, everything goes back.
 */
export async function moveProject(old: OwnContainers, options: MoveOptions): Promise<MoveEnding> {
  const { part, env, onStep } = options;
  const mover = { old, options, engine: connectEngine(env.DOCKER_HOST), undo: [] };
  const ignore = () => {};
  const held = new AbortController();
  // Half of a move would leave nothing on the ports.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, ignore);
  try {
    onStep("Starting the machine part.");
    await up(part, ["--wait", machineServices.receive, machineServices.run], env);
    await holdDeployments(options, held.signal);
    const ending = await moveHeld(mover);
    for (const container of [old.caddy, old.hotpush])
      if (container) await removeContainer(mover.engine, container.id);
    return ending;
  } catch (error) {
    if (!(error instanceof CommandError || error instanceof ProblemError)) throw error;
    return { kind: "stayed", reason: error.message };
  } finally {
    held.abort();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, ignore);
  }
}

interface Mover {
  readonly old: OwnContainers;
  readonly options: MoveOptions;
  readonly engine: Engine;
  /** What undoes the steps so far, the last one at the end. */
  readonly undo: (() => Promise<void> | void)[];
}

/** Keeps `run` from starting deployments until `signal` is aborted. */
async function holdDeployments({ part, env, onStep }: MoveOptions, signal: AbortSignal): Promise<void> {
  const request = { reason: "a project moves to the machine part", requestedBy: env.SUDO_USER || env.USER };
  try {
    for await (const { event } of holdEvents(part.state.run, request, signal)) {
      if (event === "quiet") return;
      onStep("Waiting until no deployment runs.");
    }
  } catch (error) {
    if (!(error instanceof NotRunningError) || !error.isForbidden) throw error;
    const { path } = part.files;
    throw new CommandError(
      `Only root may use the machine part. Run: sudo env MACHINE_PATH=${path} hotpush init`,
    );
  }
  throw new CommandError("The service of the machine part stopped. Run this again.");
}

async function* holdEvents(...[statePath, request, signal]: Parameters<typeof openHold>) {
  const events = openHold(statePath, request, signal);
  // Leaving a loop over the generator itself would end the hold.
  for (let next = await events.next(); !next.done; next = await events.next()) yield next.value;
}

async function moveHeld(mover: Mover): Promise<MoveEnding> {
  try {
    await prepare(mover);
    const imported = await replaceHotpush(mover);
    const gapMs = await replaceCaddy(mover);
    mover.options.writeCheckout();
    return { kind: "moved", gapMs, imported };
  } catch (error) {
    for (const step of mover.undo.toReversed()) await step();
    throw error;
  }
}

/** Everything that nobody notices. */
async function prepare({ old, options, engine, undo }: Mover): Promise<void> {
  const { part, project, services, env, onStep } = options;
  const carry = { state: part.state, project, root: old.root, env };
  onStep("Preparing: the network, the live files, certificates.");
  undo.push(options.removeProject);
  options.writeProject();
  await makeProjectNetwork(engine, project, rangeOf(part));
  for (const service of new Set(services)) {
    const containers = await listContainers(engine, old.composeProject ?? "", service);
    const serving = containers.filter(isServing);
    await joinProjectNetwork(engine, { project, service }, serving);
    await writeLiveFiles(carry, service, serving);
  }
  if (old.caddy) await carryCertificates(old.caddy, carry);
  if (await isNewCaddy(engine)) await up(part, ["--no-start", machineServices.caddy], env);
  await joinCaddy(engine, project);
}

/** From now on Caddy holds deliveries, until the new one passes them to `receive`. */
async function replaceHotpush({ old: { hotpush, root }, options, engine, undo }: Mover): Promise<number> {
  const { part, project, env, onStep } = options;
  if (hotpush === null) return 0;
  await waitUntilIdle(hotpush, (id) => onStep(`Waiting for deployment ${id}.`), env);
  onStep("Stopping the old Hotpush, and taking over its history.");
  await stopFor(engine, hotpush, undo, usualGraceS);
  return await carryHistory(hotpush, { state: part.state, project, root, env });
}

async function replaceCaddy({ old: { caddy }, options, engine, undo }: Mover): Promise<number | null> {
  const { part, sites, env, onStep } = options;
  const before = await askSites(sites);
  const isNew = await isNewCaddy(engine);
  onStep("Caddy of the machine part takes over.");
  const gapMs = await swapPorts(
    {
      async stopOld() {
        if (caddy) await stopFor(engine, caddy, undo, cutOffAfterS);
      },
      async startNew() {
        undo.push(() => undoCaddy(engine, options, isNew));
        await startCaddy(engine, part, env, isNew);
      },
    },
    before,
  );
  return caddy === null ? null : gapMs;
}

/** Hotpush ends what it answers within this time. */
const usualGraceS = 10;
/** Nothing listens while requests in flight are answered. */
const cutOffAfterS = 1;

/** Stops a container that runs, and starts it again if the move fails. */
async function stopFor(
  engine: Engine,
  { id }: Container,
  undo: Mover["undo"],
  graceS: number,
): Promise<void> {
  if ((await inspectContainer(engine, id))?.status !== "running") return;
  undo.push(async () => void (await engine.post(`/containers/${id}/start`)));
  await engine.post(`/containers/${id}/stop?t=${graceS}`, undefined, graceS * 1_000);
}

/** Its container was made before, because starting it then takes less than making it. */
async function startCaddy(
  engine: Engine,
  part: MachinePart,
  env: NodeJS.ProcessEnv,
  isNew: boolean,
): Promise<void> {
  const [caddy] = await listContainers(engine, machineProject, machineServices.caddy);
  if (isNew && caddy) await engine.post(`/containers/${caddy.id}/start`);
  else await up(part, ["--detach", "--no-deps", machineServices.caddy], env);
}

/** It must not keep a port that the old Caddy needs. */
async function undoCaddy(engine: Engine, options: MoveOptions, isNew: boolean): Promise<void> {
  const { part, env, removeProject } = options;
  removeProject();
  if (!isNew) return await up(part, ["--detach", "--no-deps", machineServices.caddy], env);
  const containers = await listContainers(engine, machineProject, machineServices.caddy);
  for (const { id } of containers) await removeContainer(engine, id);
}

/** @throws CommandError with the last line that compose printed */
async function up({ files }: MachinePart, args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const ending = await upMachinePart(files, args, env);
  if (hasSucceeded(ending)) return;
  const reason = ending.lastLines.findLast((line) => line.trim() !== "") ?? ending.kind;
  throw new CommandError(`The machine part could not be started. Compose says: ${reason.trim()}`);
}

async function isNewCaddy(engine: Engine): Promise<boolean> {
  const containers = await listContainers(engine, machineProject, machineServices.caddy);
  return containers.every(({ status }) => status !== "running");
}

function rangeOf({ env }: MachinePart): Subnet {
  const text = env.NETWORK_RANGE || "10.231.0.0/16";
  const range = parseSubnet(text);
  if (range !== null) return range;
  throw new CommandError(
    `NETWORK_RANGE is ${JSON.stringify(text)}: expected an IPv4 subnet such as 10.231.0.0/16.`,
  );
}
