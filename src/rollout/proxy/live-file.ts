import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../../platform/replace-file.ts";
import { ProblemError } from "../../problems.ts";
import type { Containers, ServiceRollout } from "../context.ts";
import { timed } from "../report/report.ts";

/**
 * Reads the live files of a service. Each holds the name of one container that gets traffic; the proxy reads them on
 * every request. The first replica's file is named after the service (`app`), the others `app.2`, `app.3`.
 *
 * @returns the names in the order of the files; empty if nothing was switched yet
 */
export async function readLiveFiles(directory: string, service: string): Promise<readonly string[]> {
  const names: string[] = [];
  for (const file of await liveFiles(directory, service)) {
    names.push((await readFile(join(directory, file), "utf8")).trim());
  }
  return [...new Set(names.filter(Boolean))];
}

/** The names in the live files of the service; none if no live file directs its requests. */
export async function namesReceiving({
  traffic,
  service,
}: Pick<ServiceRollout, "traffic" | "service">): Promise<readonly string[]> {
  return traffic.by === "live file" ? readLiveFiles(traffic.directory.path, service.name) : [];
}

/**
 * Points the proxy at `containers`, from its next request on. Each file is replaced as a whole (rename) and synced to
 * disk before this returns, so neither the proxy nor a power cut ever leaves half a name. Files of replicas that no
 * longer exist name the first container, because the Caddyfile may still list them.
 *
 * @throws ProblemError `live_file_not_writable`, for example if the disk is full
 */
export async function switchLiveFiles(
  directory: string,
  service: string,
  containers: readonly string[],
): Promise<void> {
  // No newline at the end: Caddy before 2.9 would dial it too.
  const present = await liveFiles(directory, service);
  const count = Math.max(containers.length, ...present.map((file) => replicaOf(service, file)));
  try {
    for (let replica = 1; replica <= count; replica += 1) {
      const container = containers[replica - 1] ?? containers[0];
      if (container === undefined) continue;
      replaceFile(join(directory, liveFile(service, replica)), container, { mode: 0o644, owner: null });
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const detail = `The live files in ${directory} could not be written: ${reason}.`;
    throw new ProblemError({ code: "live_file_not_writable", detail }, error);
  }
}

/**
 * Sends the requests to `containers`, if a live file directs them. Without containers, nothing changes.
 *
 * @throws ProblemError `live_file_not_writable`
 */
export async function switchTraffic(on: ServiceRollout, containers: Containers): Promise<void> {
  const { traffic, service } = on;
  if (traffic.by !== "live file" || containers.length === 0) return;
  const names = containers.map(({ name }) => name);
  const write = () => switchLiveFiles(traffic.directory.path, service.name, names);
  await timed(on, "switch", write, `requests now go to ${names.join(", ")}`);
}

/** The file name of replica `replica` (from 1) of `service`. */
function liveFile(service: string, replica: number): string {
  return replica === 1 ? service : `${service}.${replica}`;
}

async function liveFiles(directory: string, service: string): Promise<readonly string[]> {
  const files = await readdir(directory);
  const replica = (file: string) => replicaOf(service, file);
  return files.filter((file) => isLiveFileOf(service, file)).sort((a, b) => replica(a) - replica(b));
}

/** Whether `file` is the name of a live file of `service`: `app`, `app.2`, `app.3`, but not `app.02`. */
export function isLiveFileOf(service: string, file: string): boolean {
  const rest = file.startsWith(service) ? file.slice(service.length) : null;
  return rest === "" || (rest !== null && /^\.(?:[2-9]|[1-9]\d+)$/.test(rest));
}

function replicaOf(service: string, file: string): number {
  return file === service ? 1 : Number(file.slice(service.length + 1));
}
