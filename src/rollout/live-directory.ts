import { constants, existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { liveMount, serviceAlias } from "#config/server";
import { loadModel } from "#platform/compose";
import type { ComposeModel } from "#platform/compose-model";
import { type Engine, getJson, nullIfMissing } from "#platform/docker/engine";
import { isServing, withOwnHealth } from "#platform/docker/health";
import { hasMounts } from "#platform/docker/mounts";
import { isAllowed } from "#platform/files";
import { ProblemError } from "#problems";
import {
  containersOf,
  type LiveDirectory,
  onService,
  type Rollout,
  type RolloutRequest,
  type ServiceRollout,
  trafficOf,
} from "./context.ts";
import { findServerState, hostDirectoryOf, projectOnServer } from "./locate-project.ts";
import {
  liveFilesRead,
  namesReceiving,
  readLiveFiles,
  switchLiveFiles,
  switchTraffic,
} from "./switch-traffic.ts";

/** Caddy's admin API is on this socket in the live directory, or beside those of all projects. */
const socketName = "admin.sock";

/**
 * Finds the directory with the live files: the given one, else what is mounted at /run/live in this container, else,
 * on the host, what the compose file mounts at /run/live in any service. For a project on the server it is the
 * project's own directory in what is mounted at /run/live in this container or, on the host, in the server's
 * Caddy.
 *
 * @returns null if the project has none, or not yet (a volume that was never used)
 * @throws ProblemError `live_file_not_writable` if this process cannot write to it
 */
export async function findLiveDirectory(
  engine: Engine,
  model: ComposeModel,
  { livePath }: Pick<RolloutRequest, "livePath">,
): Promise<LiveDirectory | null> {
  const project = projectOnServer(model);
  if (project !== null) {
    const path = livePath || join(await liveRoot(engine, project), project);
    if (!isAllowed(path, constants.W_OK)) throw notWritable(path, true);
    return { path, adminSocket: join(dirname(path), socketName), project };
  }
  const path = livePath || (await ownDirectory(engine, model));
  if (path === null) return null;
  if (!isAllowed(path, constants.W_OK)) throw notWritable(path, false);
  return { path, adminSocket: join(path, socketName), project };
}

/** Where the directories of all projects on the server are. */
async function liveRoot(engine: Engine, project: string): Promise<string> {
  if (await isMountedHere()) return liveMount;
  const machine = await findServerState(engine);
  if (machine !== null) return machine.live;
  const detail = `${project} is on Hotpush's server (its network is external), and this engine has none: its containers were not found, so the live files were not either. Start it (docker compose up --detach, in /etc/hotpush), or set it up again, in the checkout: hotpush init. Nothing was changed.`;
  throw new ProblemError({ code: "live_file_not_writable", detail });
}

/** The directory of a project with a proxy of its own. */
async function ownDirectory(engine: Engine, model: ComposeModel): Promise<string | null> {
  if (await isMountedHere()) return liveMount;
  const mounts = Object.values(model.services).flatMap((service) => service.volumes ?? []);
  const { type, source } = mounts.find(({ target }) => target === liveMount) ?? {};
  if (source === undefined || type === "bind") return source ?? null;
  const volume = model.volumes?.[source]?.name ?? `${model.name}_${source}`;
  const found = await nullIfMissing(getJson<{ readonly Mountpoint: string }>(engine, `/volumes/${volume}`));
  return found?.Mountpoint ?? null;
}

/** Whether this is a container with the live files mounted: the image has the directory even without them. */
async function isMountedHere(): Promise<boolean> {
  if (!existsSync("/.dockerenv")) return false;
  return hasMounts(await readFile("/proc/self/mountinfo", "utf8"), [liveMount]);
}

function notWritable(path: string, isOnServer: boolean): ProblemError {
  const alone = `In a container, mount the volume at ${liveMount} in Hotpush's own service; on the host, run as root.`;
  const onServer = existsSync(path)
    ? "Run the command as the owner of the checkout or as root. Nothing was changed."
    : "It is missing; the service run makes it when it starts: docker start hotpush-run-1. Nothing was changed.";
  const detail = `The live files are in ${path}, and this process cannot write there. ${isOnServer ? onServer : alone}`;
  return new ProblemError({ code: "live_file_not_writable", detail });
}

/**
 * Writes live files that are missing or name nothing that serves. On the first roll-out, their volume is created with
 * the proxy, which may start after the services behind it.
 */
export async function adoptLiveFiles(rollout: Rollout): Promise<void> {
  const { engine } = rollout;
  const liveDirectory =
    rollout.liveDirectory ?? (await findLiveDirectory(engine, await loadModel(rollout), rollout));
  if (liveDirectory === null) return;
  const now = { ...rollout, liveDirectory, liveFilesRead: await liveFilesRead(liveDirectory) };
  if (rollout.liveDirectory === null) await refuseForeignLiveFiles(now);
  for (const service of rollout.project.services) {
    if (service.replacement.how === "roll") await adopt(onService(now, service));
    else if (service.replicas > 0) await nameItself(liveDirectory, service.name);
  }
}

async function adopt(on: ServiceRollout): Promise<void> {
  const serving = (await withOwnHealth(on.engine, await containersOf(on))).filter(isServing);
  const named = await namesReceiving(on);
  if (!serving.some(({ name }) => named.includes(name))) await switchTraffic(on, serving);
}

/**
 * On the server, the proxy reads live files of services that no roll-out switches as well: these lead to
 * whichever container the service has.
 */
async function nameItself({ path, project }: LiveDirectory, service: string): Promise<void> {
  if (project === null) return;
  const alias = serviceAlias(service, project);
  const named = await readLiveFiles(path, service);
  if (named.some((name) => name !== alias)) await switchLiveFiles(path, service, [alias]);
}

/**
 * Refuses a live file that belongs to another compose project: two projects that share a volume at /run/live would switch each
 * other's traffic. It does if it names a container of that project or, if it names none, if that project mounts it.
 *
 * @throws ProblemError `live_file_shared` with both projects and the file
 */
export async function refuseForeignLiveFiles(
  rollout: Pick<Rollout, "engine" | "project" | "liveDirectory" | "liveFilesRead">,
): Promise<void> {
  const { engine, project, liveDirectory } = rollout;
  if (liveDirectory === null) return;
  const everyone = await getJson<readonly Anyone[]>(engine, "/containers/json?all=1");
  const live = await hostDirectoryOf(engine, liveDirectory.path);
  const projectOf = (one: Anyone | undefined) => one?.Labels?.["com.docker.compose.project"] ?? project.name;
  const rival = everyone.find(
    (one) => projectOf(one) !== project.name && one.Mounts?.some(({ Source }) => Source === live),
  );
  for (const service of project.services.filter(({ replacement }) => replacement.how === "roll")) {
    for (const name of await namesReceiving({ service, traffic: trafficOf(rollout, service) })) {
      const bearer = everyone.find(({ Names }) => Names.includes(`/${name}`));
      const owner = projectOf(bearer ?? rival);
      if (owner !== project.name)
        throw shared(join(liveDirectory.path, service.name), project.name, name, owner);
    }
  }
}

/** A container of any compose project, or of none, as the engine lists it. */
interface Anyone {
  readonly Names: readonly string[];
  readonly Labels: Readonly<Record<string, string>> | null;
  readonly Mounts?: readonly { readonly Source?: string }[];
}

function shared(file: string, own: string, name: string, owner: string): ProblemError {
  const detail = `The live file ${file} of the project ${own} names ${name}, a container of the project ${owner}: a roll-out would take over the requests of ${owner}. Mount another volume at /run/live, or rename the service in the compose file and the Caddyfile. If ${owner} is gone for good: docker compose --project-name ${owner} down. Nothing was changed.`;
  return new ProblemError({ code: "live_file_shared", detail });
}
