import type { Container } from "../../platform/docker/container.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { timed } from "../report/report.ts";
import { switchLiveFiles } from "./live-file.ts";
import type { Traffic } from "./traffic.ts";

/**
 * Sends the requests to `containers`, where that is for a live file to say. Where there are none, all stays as it is.
 *
 * @throws ProblemError `live_file_not_writable`
 */
export async function switchTraffic(
  { report }: Rollout,
  service: Service,
  traffic: Traffic,
  containers: readonly Container[],
): Promise<void> {
  if (traffic.by !== "live file" || containers.length === 0) return;
  const names = containers.map(({ name }) => name);
  const write = () => switchLiveFiles(traffic.directory, service.name, names);
  await timed(report, service.name, "switch", write, () => `requests now go to ${names.join(", ")}`);
}
