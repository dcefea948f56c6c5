import { machineServices } from "../config/machine-part.ts";
import { NotRunningError, openHold } from "../control/client.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { inspectImage, tagImage } from "../platform/docker/image.ts";
import { CommandError } from "../problems.ts";
import { findOutdated, listMachineContainers, type MachineServices, recreate, rotate } from "./start.ts";

/** The files of the machine part, before or after an upgrade. */
export interface UpgradeFiles {
  /** The text of compose.yaml. */
  readonly composeText: string;
  /** HOTPUSH_IMAGE of .env. */
  readonly image: string;
  readonly write: () => void;
}

export interface UpgradeEvents {
  /** These deployments run, and no other starts. */
  readonly onWaiting: (running: readonly DeploymentJson[]) => void;
  /** Nothing runs: from now on services are replaced. */
  readonly onQuiet: () => void;
  readonly onReplaced: (service: string, tookMs: number) => void;
}

export type UpgradeEnding =
  | { readonly kind: "upgraded" }
  /** `run` stopped meanwhile, or the person left. Nothing was changed. */
  | { readonly kind: "left" }
  | WentBack;

/** The new container of a service is not healthy. */
export interface WentBack {
  readonly kind: "went-back";
  readonly service: string;
  readonly reason: readonly string[];
  /** The services whose old version is not healthy any more. */
  readonly unrecovered: readonly string[];
}

/**
 * Writes the files and replaces the services that differ from them, when no deployment runs: first `receive`, by one
 * beside it, so that no delivery waits; then `run` and the page; then Caddy. If a new container is not healthy, everything goes back.
 *
 * @param machine.signal gives up while deployments run; later it has no effect
 * @throws CommandError if `run` cannot be asked, or compose cannot read the files
 */
export async function upgradeMachinePart(
  machine: MachineServices,
  { before, after }: { readonly before: UpgradeFiles; readonly after: UpgradeFiles },
  events: UpgradeEvents,
): Promise<UpgradeEnding> {
  const oldImage = await imageOfRun(machine);
  const release = await holdDeployments(machine, "hotpush upgrade", events.onWaiting);
  if (release === null) return { kind: "left" };
  events.onQuiet();
  try {
    after.write();
    const outdated = await findOutdated(machine, after.composeText, after.image);
    const failure = await replaceServices(machine, outdated, "hotpush upgrade", events);
    if (failure === null) return { kind: "upgraded" };
    before.write();
    if (oldImage !== null) await tagImage(machine.engine, oldImage, before.image);
    return { kind: "went-back", ...failure, unrecovered: await goBack(machine, before) };
  } finally {
    release();
  }
}

/** A build may give the name of this image to the new one. */
async function imageOfRun(machine: MachineServices): Promise<string | null> {
  const [container] = await listMachineContainers(machine, machineServices.run);
  return (container && (await inspectImage(machine.engine, container.image))?.id) ?? null;
}

/**
 * Waits until no deployment runs, and keeps all from starting.
 *
 * @param command the one that asks for it
 * @returns a function that lets them start again; null if the wait was given up
 * @throws CommandError if this user may not use the socket of `run`
 */
async function holdDeployments(
  { part, env, signal }: MachineServices,
  command: string,
  onWaiting: UpgradeEvents["onWaiting"],
): Promise<(() => void) | null> {
  const held = new AbortController();
  const release = () => held.abort();
  signal.addEventListener("abort", release, { once: true });
  const request = { reason: command, requestedBy: env.SUDO_USER || env.USER };
  const events = openHold(part.state.run, request, held.signal);
  try {
    for (;;) {
      const { value } = await events.next();
      if (!value) return null;
      if (value.event === "quiet") break;
      onWaiting(value.running);
    }
  } catch (error) {
    if (!(error instanceof NotRunningError)) throw error;
    if (error.isForbidden)
      throw new CommandError(
        `Only root may do this. Run: sudo env MACHINE_PATH=${part.files.path} ${command}`,
      );
    // It does not run, so neither does a deployment.
  }
  signal.removeEventListener("abort", release);
  return release;
}

/**
 * Replaces the containers of services as their files say, one service after the other, until one is not healthy.
 *
 * @param command the one that asks for it
 */
export async function replaceServices(
  machine: MachineServices,
  services: readonly string[],
  command: string,
  { onReplaced, onWaiting }: Pick<UpgradeEvents, "onReplaced" | "onWaiting">,
): Promise<Pick<WentBack, "service" | "reason"> | null> {
  for (const service of order.filter((one) => services.includes(one))) {
    // Replacing `run` would end the scripts that it runs. The new one knows nothing of a hold at the one before it, and a
    // roll-out needs Caddy.
    const release = needQuiet.includes(service) ? await holdDeployments(machine, command, onWaiting) : null;
    const startMs = performance.now();
    const reason = await replaceService(machine, service);
    release?.();
    if (reason !== null) return { service, reason };
    onReplaced(service, performance.now() - startMs);
  }
  return null;
}

const { receive, run, page, caddy } = machineServices;
const order: readonly string[] = [receive, run, page, caddy];
const needQuiet: readonly string[] = [run, caddy];

/** Several `receive` may share an inbox, and Caddy finds each of them by the name that they have in common. */
function replaceService(machine: MachineServices, service: string): Promise<readonly string[] | null> {
  return service === machineServices.receive ? rotate(machine, service) : recreate(machine, service);
}

/** @returns the services that are not healthy now */
async function goBack(
  machine: MachineServices,
  { composeText, image }: UpgradeFiles,
): Promise<readonly string[]> {
  const outdated = await findOutdated(machine, composeText, image);
  const unrecovered: string[] = [];
  for (const service of order.filter((one) => outdated.includes(one)))
    if ((await replaceService(machine, service)) !== null) unrecovered.push(service);
  return unrecovered;
}
