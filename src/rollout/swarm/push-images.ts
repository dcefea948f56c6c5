import { hasSucceeded, runCompose } from "../../platform/compose/run-compose.ts";
import { namesRegistry } from "../../platform/docker/image.ts";
import type { Argv } from "../../platform/run-command.ts";
import { ProblemError } from "../../problems.ts";
import { timed } from "../report/report.ts";
import type { StackRollout } from "./context.ts";

const pushTimeoutMs = 30 * 60_000;

/**
 * Pushes those `references` that contain a registry, so that every node can pull them.
 *
 * @throws ProblemError `image_push_failed` with Docker's message
 */
export async function pushImages(rollout: StackRollout, references: readonly string[]): Promise<void> {
  for (const reference of new Set(references.filter(namesRegistry))) {
    const pushing = () => push(rollout, reference);
    await timed(rollout, "push", pushing, () => reference);
  }
}

async function push(rollout: StackRollout, reference: string): Promise<void> {
  const ending = await runCompose(rollout, pushCommand(reference), { timeoutMs: pushTimeoutMs });
  if (hasSucceeded(ending)) return;
  throw new ProblemError({
    code: "image_push_failed",
    detail: `The image ${reference} could not be pushed. Is the registry up, and was docker login run for this user?`,
    evidence: ending.lastLines,
  });
}

export function pushCommand(reference: string): Argv {
  return ["docker", "push", reference];
}
