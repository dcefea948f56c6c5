import { hasEndedWell, linesOf, runCompose } from "../../platform/compose/run-compose.ts";
import { ProblemError } from "../../problems.ts";
import { timed } from "../report/report.ts";
import type { StackRollout } from "./context.ts";
import { pushCommand } from "./deploy-command.ts";
import { namesRegistry } from "./registry.ts";

const pushTimeoutMs = 30 * 60_000;

/**
 * Pushes those of `references` that name a registry, so that every node can get them.
 *
 * @throws ProblemError `image_push_failed` with what Docker says; nothing was deployed yet
 */
export async function pushImages(rollout: StackRollout, references: readonly string[]): Promise<void> {
  const pushed = [...new Set(references)].filter(namesRegistry);
  for (const reference of pushed) {
    await timed(
      rollout.report,
      null,
      "push",
      () => push(rollout, reference),
      () => reference,
    );
  }
}

async function push(rollout: StackRollout, reference: string): Promise<void> {
  const ending = await runCompose(rollout, pushCommand(reference), { timeoutMs: pushTimeoutMs });
  if (hasEndedWell(ending)) return;
  throw new ProblemError({
    code: "image_push_failed",
    detail: `The image ${reference} could not be pushed. Is the registry up, and was docker login run for this user?`,
    evidence: linesOf(ending),
  });
}
