import { constants, existsSync, mkdirSync, renameSync, rmSync, truncateSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { callRun, NotRunningError } from "#calls/client";
import type { ProjectJson } from "#calls/shapes";
import { projectNetwork } from "#config/server";
import { untilRight } from "#platform/async";
import { namedFiles, namingFiles } from "#platform/compose";
import { type Engine, nullIfMissing } from "#platform/docker/engine";
import { parseEnvFile, withoutVariable } from "#platform/env-file";
import { attempt, isAllowed } from "#platform/files";
import { removeForeignFile } from "#platform/foreign-files";
import { CommandError } from "#problems";
import { requestsLog } from "#rollout/requests";
import { type PlannedFile, planFile, readIfThere, withSettings, writePlanned } from "./planned-file.ts";
import { ownComposeFile, ownFilesIn, usualFiles } from "./project.ts";
import {
  chooseProject,
  findProjectAround,
  findServerProject,
  listServerProjects,
  removedFiles,
  type Server,
  type ServerProject,
} from "./server.ts";

/** What the removal of a project changes. */
export type PlannedRemoval = Awaited<ReturnType<typeof planRemoval>>;

/**
 * Plans the removal of the named project, else of that of this directory. One whose removal was interrupted is among the
 * removed ones already.
 *
 * @throws CommandError if there is no such project, this user may not remove it, or a deployment of it runs
 */
export async function planRemoval(server: Server, name: string | undefined) {
  const find = (among: Server) =>
    name === undefined ? findProjectAround(among, ".") : findServerProject(among, name);
  const removed = { ...server, files: removedFiles(server.files) };
  const project = find(server) ?? find(removed) ?? chooseProject(server, ".", name);
  if (project === null)
    throw new CommandError(
      "No project of this server has this checkout. Name one: hotpush remove --project <name>",
    );
  if (!isAllowed(server.files.projectsPath, constants.W_OK))
    throw new CommandError(
      `Only the owner of ${server.files.path} may remove projects from this server. Run this with sudo.`,
    );
  const known = await askProject(server, project.name);
  if (isRunning(known)) {
    const id = known?.last?.id;
    throw new CommandError(
      `Deployment ${id} of ${project.name} runs. Wait for its end (hotpush logs -f ${id}) or cancel it (hotpush cancel ${id}), and run this again. Nothing was changed.`,
    );
  }
  const files = Object.values(filesOf(project.name)).map((file) => join(server.files.path, file));
  const checkout = project.env.REPO_PATH ?? "";
  return {
    project,
    /** Its files on the server that are there: they are kept aside. */
    moved: files.filter((path) => existsSync(path)),
    /** The compose files that `init` added to the checkout. */
    removed: ownFilesIn(checkout),
    /** The checkout's `.env` without them. */
    changed:
      namedFiles(parseEnvFile(readIfThere(join(checkout, ".env")) ?? "")).length > 0
        ? planEnv(checkout)
        : null,
  };
}

/**
 * Plans to take our compose file off COMPOSE_FILE, and that off `.env` if compose uses the others by itself.
 *
 * @throws CommandError if `.env` is a link, or cannot be read
 */
export function planEnv(root: string): PlannedFile {
  const make = (before: string | null) => {
    const text = before ?? "";
    const env = parseEnvFile(text);
    const named = namedFiles(env).map((file) => resolve(root, file));
    const kept = named.filter((file) => file !== join(root, ownComposeFile));
    if (kept.length === named.length) return text;
    if (kept.join("\n") === usualFiles(root).join("\n")) return withoutVariable(text, "COMPOSE_FILE");
    return withSettings(text, [{ name: "COMPOSE_FILE", value: namingFiles(kept, env), isOpen: false }]);
  };
  return planFile(root, { name: ".env", mode: null, purpose: `without ${ownComposeFile}`, make });
}

/** The files of a project, from the directory of the server. */
function filesOf(name: string) {
  return { settings: `projects/${name}.env`, secrets: `secrets/${name}.env`, site: `sites/${name}.caddy` };
}

/** `run` notices within 5 s that a file is gone, and lets Caddy leave the network within 3 s. */
const noticedWithinMs = 20_000;
const networkWithinMs = 5_000;
const pollMs = 200;

/**
 * Takes a project off the server: it gets no more pushes, what waits is cancelled, and its site, its network and its live files
 * are removed. The files with its secrets are kept aside. If this fails or is interrupted, it can be repeated: the site goes last.
 *
 * @param onWaiting a deployment that has begun in this moment is waited for
 * @returns whether the network is there still, because containers are on it
 * @throws CommandError if `run` does not notice
 */
export async function removeProject(
  server: Server,
  engine: Engine,
  { project: { name }, removed, changed }: PlannedRemoval,
  onWaiting: () => void,
): Promise<{ readonly isNetworkLeft: boolean }> {
  const { settings, secrets, site } = filesOf(name);
  keepAside(server, settings);
  const isServed = async () => ((await askProject(server, name))?.isServed ? "it is" : null);
  if ((await untilRight(isServed, { withinMs: noticedWithinMs, pauseMs: pollMs })) !== null)
    throw new CommandError(
      `Hotpush has not noticed that ${name} is gone. See: hotpush status. Then run this again.`,
    );
  for (let isFirst = true; isRunning(await askProject(server, name)); isFirst = false) {
    if (isFirst) onWaiting();
    await sleep(pollMs);
  }
  // If `run` is not there, or does not know the project any more, it stays.
  await cancelWaiting(server, name).catch(() => {});
  removed.forEach(removeForeignFile);
  if (changed !== null) writePlanned(changed);
  keepAside(server, secrets);
  keepAside(server, site);
  rmSync(join(server.state.live, name), { recursive: true, force: true });
  // Caddy keeps the file open, also for a later project of this name.
  attempt(() => truncateSync(requestsLog(server.state.live, name)), undefined);
  // Caddy leaves the network of a project without a site by itself. Other containers may be on it.
  const removeNetwork = () =>
    nullIfMissing(engine.delete(`/networks/${projectNetwork(name)}`))
      .then(() => null)
      .catch((error: Error) => error);
  const left = await untilRight(removeNetwork, { withinMs: networkWithinMs, pauseMs: pollMs });
  return { isNetworkLeft: left !== null };
}

async function cancelWaiting({ state }: Server, name: string): Promise<void> {
  const { waiting } = await callRun(state.run, "status", { project: name });
  for (const { id } of waiting) await callRun(state.run, "cancel", { id });
}

/** A file that is not there was never there, or is kept already. */
function keepAside({ files }: Server, file: string): void {
  const from = join(files.path, file);
  if (!existsSync(from)) return;
  const to = join(removedFiles(files).path, file);
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  renameSync(from, to);
}

/**
 * Finds what runs of a project.
 *
 * @returns the project as `run` has it; null if `run` is not there, or does not know it
 * @throws CommandError if this user may not ask
 */
async function askProject({ state }: Server, name: string): Promise<ProjectJson | null> {
  try {
    const answer = await callRun(state.run, "projects", {});
    return answer.projects.find((one) => one.name === name) ?? null;
  } catch (error) {
    if (!(error instanceof NotRunningError)) throw error;
    if (!error.isForbidden) return null;
    throw new CommandError("Only root may change the projects of this server. Run this with sudo.");
  }
}

function isRunning(project: ProjectJson | null): boolean {
  return project?.last?.state === "running";
}

/** The projects that the server had before. */
export function listRemovedProjects(server: Server): readonly ServerProject[] {
  return listServerProjects({ ...server, files: removedFiles(server.files) });
}
