import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { liveMount, machineServices, projectNetwork } from "../config/machine-part.ts";
import { callService, NotRunningError } from "../control/client.ts";
import type { ProjectJson } from "../control/projects.ts";
import { type Engine, EngineRefusal } from "../platform/docker/engine.ts";
import { sendHttp } from "../platform/http.ts";
import { rewriteFile } from "../platform/replace-file.ts";
import { withShortPath } from "../platform/unix-socket.ts";
import { CommandError, ProblemError } from "../problems.ts";
import { requestsLog } from "../rollout/requests/caddy-lines.ts";
import { type MachinePart, removedFiles } from "./server.ts";
import { withoutCaddyPort } from "./server-files.ts";
import { findOutdated, type MachineServices } from "./start.ts";
import { replaceServices } from "./upgrade.ts";

/** A file of a project, and where it is kept when the project is removed. */
export interface KeptFile {
  readonly from: string;
  readonly to: string;
}

/** The files of a project in the machine part, in the order in which they are removed. */
export interface ProjectFiles {
  readonly settings: KeptFile;
  readonly secrets: KeptFile;
  readonly site: KeptFile;
}

/** The files of the project `name`, whether they are there or not. */
export function filesOfProject({ files }: MachinePart, name: string): ProjectFiles {
  const removed = removedFiles(files);
  const kept = (directory: "projectsPath" | "secretsPath" | "sitesPath", file: string): KeptFile => ({
    from: join(files[directory], file),
    to: join(removed[directory], file),
  });
  return {
    settings: kept("projectsPath", `${name}.env`),
    secrets: kept("secretsPath", `${name}.env`),
    site: kept("sitesPath", `${name}.caddy`),
  };
}

/** What is done between the steps of a removal. */
export interface RemovalEvents {
  /** A deployment that has begun in this moment is waited for, or with `isOther` those of other projects. */
  readonly onWaiting: (isOther: boolean) => void;
  /** No deployment of the project starts any more. */
  readonly onUnserved: () => void;
}

/** What could not be finished, because something does not run or is still in use. */
export interface RemovalEnding {
  /** Why Caddy, which was started again without the project's ports, is not healthy; else null. */
  readonly caddyFailure: readonly string[] | null;
  /** Whether `run` has noticed, so that no deployment starts and Caddy gets no site. */
  readonly isNoticed: boolean;
  /** Whether Caddy has no site of the project any more. */
  readonly isOutOfCaddy: boolean;
  /** Whether the network is there still, because containers are on it. */
  readonly isNetworkLeft: boolean;
}

/** `run` notices within 5 s that a file is gone, and Caddy within 3 s that a site is. */
const noticedWithinMs = 20_000;
const pollMs = 200;

/**
 * Takes a project off the machine part: it gets no more pushes, Caddy has no site and no port of it, and its network and live
 * files are removed. The files with its secrets are kept aside. If this is interrupted, it can be repeated: the site goes last.
 *
 * @param ports those of the machine that Caddy has for this project alone
 */
export async function removeProject(
  machine: MachineServices,
  name: string,
  ports: readonly number[],
  events: RemovalEvents,
): Promise<RemovalEnding> {
  const { part, engine } = machine;
  const { settings, secrets, site } = filesOfProject(part, name);
  keepAside(settings);
  const isNoticed = await untilUnserved(part, name, () => events.onWaiting(false));
  events.onUnserved();
  keepAside(secrets);
  const caddyFailure = ports.length === 0 ? null : await releasePorts(machine, ports, events);
  keepAside(site);
  const isOutOfCaddy = await within(noticedWithinMs, () => hasNoSite(part, name));
  if (isOutOfCaddy) removeLiveFiles(part.state.live, name);
  const isNetworkLeft = !(await within(isOutOfCaddy ? 3_000 : 0, () => removeNetwork(engine, name)));
  return { caddyFailure, isNoticed, isOutOfCaddy, isNetworkLeft };
}

/** An engine can take a port away only from a new container. */
async function releasePorts(
  machine: MachineServices,
  ports: readonly number[],
  { onWaiting }: RemovalEvents,
): Promise<readonly string[] | null> {
  const { files, env } = machine.part;
  const before = readFileSync(files.composeFile, "utf8");
  const composeText = ports.reduce(withoutCaddyPort, before);
  if (composeText !== before) rewriteFile(files.composeFile, composeText);
  const outdated = await findOutdated(machine, composeText, env.HOTPUSH_IMAGE ?? "");
  if (!outdated.includes(machineServices.caddy)) return null;
  const replacing = { onReplaced: () => {}, onWaiting: () => onWaiting(true) };
  const failure = await replaceServices(machine, [machineServices.caddy], "hotpush remove", replacing);
  return failure?.reason ?? null;
}

/**
 * Finds what runs of a project.
 *
 * @returns the project as `run` has it; null if `run` is not there, or does not know it
 * @throws CommandError if this user may not ask
 */
export async function askProject({ state }: MachinePart, name: string): Promise<ProjectJson | null> {
  try {
    const { projects } = await callService<{ projects: readonly ProjectJson[] }>(
      state.run,
      "GET",
      "/projects",
    );
    return projects.find((one) => one.name === name) ?? null;
  } catch (error) {
    if (!(error instanceof NotRunningError)) throw error;
    if (!error.isForbidden) return null;
    throw new CommandError("Only root may change the machine part. Run this with sudo.");
  }
}

/** A file that is not there was never there, or is kept already. */
function keepAside({ from, to }: KeptFile): void {
  if (!existsSync(from)) return;
  mkdirSync(dirname(dirname(to)), { recursive: true, mode: 0o700 });
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  renameSync(from, to);
}

/** A deployment may have started just before. */
async function untilUnserved(part: MachinePart, name: string, onRunning: () => void): Promise<boolean> {
  const isUnserved = async () => !((await askProject(part, name))?.isServed ?? false);
  if (!(await within(noticedWithinMs, isUnserved))) return false;
  for (let isFirst = true; isRunning(await askProject(part, name)); isFirst = false) {
    if (isFirst) onRunning();
    await sleep(pollMs);
  }
  return true;
}

/** Whether a deployment of the project runs. */
export function isRunning(project: ProjectJson | null): boolean {
  return project?.last?.state === "running";
}

/** A site has the live files of its services. Caddy that does not run has none either. */
async function hasNoSite({ state }: MachinePart, name: string): Promise<boolean> {
  const config = await withShortPath(join(state.live, "admin.sock"), (socketPath) =>
    sendHttp({ socketPath, path: "/config/" }, { headers: { host: "localhost" }, timeoutMs: 5_000 }),
  ).catch(() => null);
  return !config?.body.includes(`${liveMount}/${name}/`);
}

function removeLiveFiles(livePath: string, name: string): void {
  for (const path of [join(livePath, name), requestsLog(livePath, name)])
    rmSync(path, { recursive: true, force: true });
}

/** Caddy leaves the network of a project without a site by itself. Other containers may be on it. */
async function removeNetwork(engine: Engine, name: string): Promise<boolean> {
  try {
    await engine.delete(`/networks/${projectNetwork(name)}`);
    return true;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return error instanceof EngineRefusal && error.status === 404;
  }
}

/** Asks until the answer is yes, and once at least. */
async function within(limitMs: number, ask: () => Promise<boolean>): Promise<boolean> {
  const endMs = performance.now() + limitMs;
  for (;;) {
    if (await ask()) return true;
    if (performance.now() >= endMs) return false;
    await sleep(pollMs);
  }
}
