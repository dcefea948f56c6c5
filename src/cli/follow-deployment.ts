import { open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { findDeployment } from "../deployments/record.ts";
import { isFinished } from "../deployments/states.ts";
import type { Store } from "../deployments/store.ts";
import { logPath } from "../runner/log-paths.ts";

const lookIntervalMs = 200;

/**
 * Writes the output of a deployment to standard output as it comes, until the deployment has ended.
 *
 * @returns the exit code: 0 where it succeeded, else 1
 */
export async function followDeployment(store: Store, statePath: string, id: number): Promise<number> {
  const path = logPath(statePath, id);
  let shown = 0;
  for (;;) {
    const deployment = findDeployment(store, id);
    shown = await showFrom(path, shown);
    if (!deployment || isFinished(deployment.state)) {
      const state = deployment?.state ?? "gone";
      const newer = deployment?.supersededBy ? ` by deployment ${deployment.supersededBy}` : "";
      process.stdout.write(`Deployment ${id}: ${state}${newer}.\n`);
      return state === "succeeded" ? 0 : 1;
    }
    await sleep(lookIntervalMs);
  }
}

/** @returns how much of the file has been shown now */
async function showFrom(path: string, position: number): Promise<number> {
  const file = await open(path, "r").catch(() => null);
  if (file === null) return position;
  try {
    const { size } = await file.stat();
    if (size <= position) return position;
    const { buffer, bytesRead } = await file.read(
      Buffer.alloc(size - position),
      0,
      size - position,
      position,
    );
    process.stdout.write(buffer.subarray(0, bytesRead));
    return position + bytesRead;
  } finally {
    await file.close();
  }
}
