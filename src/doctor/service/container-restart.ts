import { findOwnContainer } from "../../platform/docker/own-container.ts";
import { type Fault, problem } from "../check.ts";
import type { Scene } from "../scene.ts";

interface Inspected {
  readonly HostConfig?: { readonly RestartPolicy?: { readonly Name?: string } };
}

/** Asks Docker about the container that this process runs in: what is wrong with it, or nothing; null where it cannot be asked. */
export async function containerRestartFaults({ engine }: Scene): Promise<readonly Fault[] | null> {
  const answer = await engine();
  if (answer.kind !== "answers") return null;
  const own = await findOwnContainer(answer.engine);
  if (own === null) return null;
  const inspected: Inspected = JSON.parse((await answer.engine.get(`/containers/${own.id}/json`)).toString());
  const policy = inspected.HostConfig?.RestartPolicy?.Name ?? "";
  if (policy === "always" || policy === "unless-stopped") return [];
  const text = "This container has no restart policy that survives a crash and a reboot. On the host:";
  return [problem(text, { command: `docker update --restart unless-stopped ${own.id.slice(0, 12)}` })];
}
