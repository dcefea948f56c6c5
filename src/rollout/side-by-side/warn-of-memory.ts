import { formatSize } from "../../config/size.ts";
import { memoryOf } from "../../platform/docker/memory.ts";
import { readFreeMemory } from "../../platform/free-memory.ts";
import type { Rollout, RunningContainers } from "../context.ts";
import { note } from "../report/report.ts";

type Warned = Pick<Rollout, "engine" | "report" | "services">;

/**
 * Warns, while the images are built, of each service whose new containers do not fit beside the old ones, by what these hold
 * now. The new version may need less, so nothing is refused.
 */
export async function warnOfMemory(
  { engine, report, services }: Warned,
  running: RunningContainers,
  readFree: typeof readFreeMemory = readFreeMemory,
): Promise<void> {
  const { availableBytes, swapBytes } = await readFree();
  for (const service of services.filter(({ replacement }) => replacement.how === "roll")) {
    const heldBytes = await memoryOf(engine, running.get(service.name) ?? []);
    if (heldBytes <= availableBytes + swapBytes) continue;
    const text = `holds ${formatSize(heldBytes)} of memory, and as much again will not fit beside it: ${formatSize(availableBytes)} are free, and ${formatSize(swapBytes)} of swap. The kernel may end one of the two. Free some memory, or label the service hotpush.rollout: recreate`;
    note({ report, service }, text);
  }
}
