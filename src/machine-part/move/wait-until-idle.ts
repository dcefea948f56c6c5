import { setTimeout as sleep } from "node:timers/promises";
import type { Container } from "../../platform/docker/container.ts";
import { outputOf } from "../../platform/run-command.ts";

const pollMs = 500;

/**
 * Waits until the Hotpush in a container runs no deployment. One that cannot be asked does not count: what its stop
 * interrupts runs again later.
 *
 * @param onWaiting called once, if a deployment runs
 */
export async function waitUntilIdle(
  { id }: Container,
  onWaiting: (deployment: number) => void,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  for (let isFirst = true; ; isFirst = false) {
    const output = await outputOf(["docker", "exec", id, "hotpush", "status", "--json"], { env });
    const running = output === null ? null : readRunning(output);
    if (running === null) return;
    if (isFirst) onWaiting(running);
    await sleep(pollMs);
  }
}

function readRunning(output: string): number | null {
  try {
    const { running }: { readonly running?: { readonly deployment: { readonly id: number } } | null } =
      JSON.parse(output);
    return running?.deployment.id ?? null;
  } catch {
    return null;
  }
}
