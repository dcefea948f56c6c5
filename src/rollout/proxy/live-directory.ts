import { constants, existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { loadModel } from "../../platform/compose/ask-compose.ts";
import type { ComposeModel } from "../../platform/compose/model.ts";
import { type Engine, getJson, nullIfMissing } from "../../platform/docker/engine.ts";
import { isServing } from "../../platform/docker/health.ts";
import { hasMounts } from "../../platform/docker/mountinfo.ts";
import { isAllowed } from "../../platform/files.ts";
import { ProblemError } from "../../problems.ts";
import { containersOf, onService, type Rollout, type ServiceRollout } from "../context.ts";
import { liveFilesRead } from "./caddy.ts";
import { namesReceiving, switchTraffic } from "./live-file.ts";
import { refuseForeignLiveFiles } from "./refuse-shared-live-files.ts";

/** The mount point of the live directory in the proxy, and in Hotpush's own container. */
const mountPoint = "/run/live";

/**
 * Finds the directory with the live files: the given one, else what is mounted at /run/live in this container, else,
 * on the host, what the compose file mounts at /run/live in any service.
 *
 * @returns its path on this machine, or null if the project has none, or not yet (a volume that was never used)
 * @throws ProblemError `live_file_not_writable` if this process cannot write to it
 */
export async function findLiveDirectory(
  engine: Engine,
  model: ComposeModel,
  named: string | undefined,
): Promise<string | null> {
  if (named) return writable(named);
  const source = mountedSource(model);
  if (await isMountedHere()) return writable(mountPoint);
  if (source === null) return null;
  if (source.type === "bind") return writable(source.path);
  const path = await volumePath(engine, source.volume);
  return path === null ? null : writable(path);
}

/** Whether this is a container with the live files mounted: the image has the directory even without them. */
async function isMountedHere(): Promise<boolean> {
  if (!existsSync("/.dockerenv")) return false;
  return hasMounts(await readFile("/proc/self/mountinfo", "utf8"), [mountPoint]);
}

type Source =
  | { readonly type: "bind"; readonly path: string }
  | { readonly type: "volume"; readonly volume: string };

function mountedSource(model: ComposeModel): Source | null {
  const mounts = Object.values(model.services).flatMap((service) => service.volumes ?? []);
  const live = mounts.find(({ target }) => target === mountPoint);
  if (live?.source === undefined) return null;
  if (live.type === "bind") return { type: "bind", path: live.source };
  return { type: "volume", volume: model.volumes?.[live.source]?.name ?? `${model.name}_${live.source}` };
}

async function volumePath(engine: Engine, volume: string): Promise<string | null> {
  const found = await nullIfMissing(getJson<{ readonly Mountpoint: string }>(engine, `/volumes/${volume}`));
  return found?.Mountpoint ?? null;
}

function writable(path: string): string {
  if (isAllowed(path, constants.W_OK)) return path;
  const detail = `The live files are in ${path}, and this process cannot write there. In a container, mount the volume at ${mountPoint} in Hotpush's own service; on the host, run as root.`;
  throw new ProblemError({ code: "live_file_not_writable", detail });
}

/**
 * Writes live files that are missing or name nothing that serves. On the first roll-out, their volume is created with
 * the proxy, which may start after the services behind it.
 */
export async function adoptLiveFiles(rollout: Rollout): Promise<void> {
  const liveDirectory = rollout.liveDirectory ?? (await findAgain(rollout));
  if (liveDirectory === null) return;
  const now = { ...rollout, liveDirectory, liveFilesRead: await liveFilesRead(liveDirectory) };
  if (rollout.liveDirectory === null) await refuseForeignLiveFiles(now);
  for (const service of rollout.project.services)
    if (service.replacement.how === "roll") await adopt(onService(now, service));
}

async function findAgain(rollout: Rollout): Promise<string | null> {
  return findLiveDirectory(rollout.engine, await loadModel(rollout), rollout.livePath);
}

async function adopt(on: ServiceRollout): Promise<void> {
  const serving = (await containersOf(on)).filter(isServing);
  const named = await namesReceiving(on);
  if (!serving.some(({ name }) => named.includes(name))) await switchTraffic(on, serving);
}
