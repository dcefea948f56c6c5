import { loadModel } from "../../platform/compose/ask-compose.ts";
import { listContainers } from "../../platform/docker/container.ts";
import { isServing } from "../../platform/docker/health.ts";
import type { RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { liveFilesRead } from "./caddy.ts";
import { findLiveDirectory } from "./live-directory.ts";
import { readLiveFiles } from "./live-file.ts";
import { refuseForeignLiveFiles } from "./refuse-shared-live-files.ts";
import { switchTraffic, type Traffic, trafficOf } from "./traffic.ts";

/**
 * Writes live files that are missing or name nothing that serves. On the first roll-out, their volume is created with
 * the proxy, which may start after the services behind it.
 */
export async function adoptLiveFiles(rollout: Rollout): Promise<void> {
  const liveDirectory = rollout.liveDirectory ?? (await findAgain(rollout));
  if (liveDirectory === null) return;
  const now = { liveDirectory, liveFilesRead: await liveFilesRead(liveDirectory) };
  if (rollout.liveDirectory === null) await refuseForeignLiveFiles({ ...rollout, ...now });
  for (const service of rollout.project.services) {
    const traffic = trafficOf(now, service);
    if (service.replacement.how !== "roll" || traffic.by !== "live file") continue;
    await adopt(rollout, service, traffic);
  }
}

async function findAgain(rollout: Rollout): Promise<string | null> {
  return findLiveDirectory(rollout.engine, await loadModel(rollout), rollout.livePath);
}

async function adopt(
  rollout: Rollout,
  service: RolloutService,
  traffic: Extract<Traffic, { by: "live file" }>,
): Promise<void> {
  const { engine, project } = rollout;
  const serving = (await listContainers(engine, project.name, service.name)).filter(isServing);
  const named = await readLiveFiles(traffic.directory, service.name);
  if (serving.some(({ name }) => named.includes(name))) return;
  await switchTraffic(rollout, service, traffic, serving);
}
