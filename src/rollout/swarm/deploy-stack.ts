import { dirname } from "node:path";
import { type ComposeRun, hasEndedWell, linesOf, runCompose } from "../../platform/compose/run-compose.ts";
import type { Argv, CommandEnding } from "../../platform/run-command.ts";
import { ProblemError } from "../../problems.ts";
import { timed } from "../report/report.ts";
import type { StackRollout } from "./context.ts";
import { deployCommand, deployInput, type ResolveImage, stackConfigCommand } from "./deploy-command.ts";
import { onlyServices } from "./only-services.ts";
import { namesRegistry } from "./registry.ts";
import type { StackService } from "./stack.ts";

const deployTimeoutMs = 5 * 60_000;

/** What is deployed: the image of each service by its name in the stack file, and whether registries are asked anew. */
export interface Deployment {
  readonly images: ReadonlyMap<string, string>;
  readonly withPull: boolean;
}

/**
 * Tells Swarm the new state of the stack, or of some of its services; it then works on by itself.
 *
 * @throws ProblemError `stack_refused` with what Docker says
 */
export async function deployStack(
  rollout: StackRollout,
  services: readonly StackService[],
  { images, withPull }: Deployment,
): Promise<void> {
  const { project, target, report } = rollout;
  const isWhole = services.length === project.services.length;
  const resolveImage = resolveImageOf([...images.values()], withPull);
  const overlay = deployInput(project.services, images);
  const deploy = async () => {
    const files = isWhole ? [...target.files, "-"] : ["-"];
    const input = isWhole ? overlay : await partOf(rollout, services, overlay);
    // A file that comes on standard input is taken to lie where the command is run.
    const directory = isWhole ? "." : dirname(target.files[0] ?? ".");
    const argv = deployCommand({ stack: project.name, files, resolveImage });
    await run(rollout, argv, { timeoutMs: deployTimeoutMs, input, directory });
  };
  const what = isWhole ? "" : `: ${services.map(({ name }) => name).join(", ")}`;
  await timed(report, null, "deploy", deploy, () => `stack ${project.name}${what}`);
}

/** The stack file as it is deployed, without the other services. */
async function partOf(
  rollout: StackRollout,
  services: readonly StackService[],
  overlay: string,
): Promise<string> {
  const argv = stackConfigCommand([...rollout.target.files, "-"]);
  const { output } = await run(rollout, argv, { timeoutMs: deployTimeoutMs, input: overlay });
  const names = services.map(({ name }) => name);
  // Variables are filled in already: what still looks like one is text.
  return onlyServices(output, names).replaceAll("$", () => "$$");
}

async function run(
  rollout: StackRollout,
  argv: Argv,
  options: ComposeRun,
): Promise<Extract<CommandEnding, { readonly kind: "exited" }>> {
  const ending = await runCompose(rollout, argv, options);
  if (ending.kind === "exited" && hasEndedWell(ending)) return ending;
  throw new ProblemError({
    code: "stack_refused",
    detail: `${argv.slice(0, 3).join(" ")} failed.`,
    evidence: linesOf(ending),
  });
}

/**
 * Asking the registry of every image anew would also update what this commit did not change; asking for an image that
 * is in no registry only wastes time.
 */
function resolveImageOf(images: readonly string[], withPull: boolean): ResolveImage {
  if (withPull) return "always";
  return images.some(namesRegistry) ? "changed" : "never";
}
