import { ProblemError } from "../../problems.ts";
import { hasEndedWell, linesOf, runCompose } from "../compose/run-compose.ts";
import { timed } from "../report/report.ts";
import type { StackRollout } from "./context.ts";
import { deployCommand, deployInput, type ResolveImage } from "./deploy-command.ts";
import { namesRegistry } from "./registry.ts";

const deployTimeoutMs = 5 * 60_000;

/**
 * Tells Swarm the new state of the stack; it then works on by itself.
 *
 * @throws ProblemError `stack_refused` with what Docker says
 */
export async function deployStack(
  rollout: StackRollout,
  images: ReadonlyMap<string, string>,
  withPull: boolean,
): Promise<void> {
  const { project, target, report } = rollout;
  const resolveImage = resolveImageOf([...images.values()], withPull);
  const argv = deployCommand({ stack: project.name, files: target.files, resolveImage });
  const deploy = async () => {
    const ending = await runCompose(rollout, argv, {
      timeoutMs: deployTimeoutMs,
      input: deployInput(project.services, images),
    });
    if (hasEndedWell(ending)) return;
    throw new ProblemError({
      code: "stack_refused",
      detail: "docker stack deploy failed.",
      evidence: linesOf(ending),
    });
  };
  await timed(report, null, "deploy", deploy, () => `stack ${project.name}`);
}

/**
 * Asking the registry of every image anew would also update what this commit did not change; asking for an image that
 * is in no registry only wastes time.
 */
function resolveImageOf(images: readonly string[], withPull: boolean): ResolveImage {
  if (withPull) return "always";
  return images.some(namesRegistry) ? "changed" : "never";
}
