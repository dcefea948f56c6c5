import type { Command } from "commander";
import type { RequestedJson } from "../control/requests.ts";
import { type CommandContext, deploymentId, newCommand, projectOption } from "./command.ts";
import { endingLines } from "./deployment-text.ts";
import { follow, interruptedExitCode } from "./follow.ts";
import { accessService, type ProjectChoice, type ServiceAccess } from "./service-access.ts";

interface CancelOptions extends ProjectChoice {
  readonly json?: boolean;
}

/** `hotpush cancel`: its exit code is 0 if the deployment was cancelled, 1 if it ended in another way. */
export function makeCancelCommand({ env, finish }: CommandContext): Command {
  const description =
    "Cancel the running deployment, else the next one in the queue, or the one with this number. A running script is terminated (SIGTERM), and killed after 15 s; what it has done so far stays.";
  return newCommand("cancel", description, [
    "hotpush cancel     the running deployment",
    "hotpush cancel 7   deployment 7, running or queued",
  ])
    .argument("[id]", "the number of a deployment", deploymentId)
    .addOption(projectOption())
    .option("--json", "one JSON object, at the end (docs/cli.md)")
    .action(async (wanted: number | undefined, { json = false, ...choice }: CancelOptions) =>
      finish(await cancel(accessService(env, choice), wanted, json)),
    );
}

async function cancel(service: ServiceAccess, wanted: number | undefined, isJson: boolean): Promise<number> {
  const { post, terminal } = service;
  const { deployment: found } = await post<RequestedJson>(`/deployments/${wanted ?? "latest"}/cancel`);
  const { id, state } = found;
  if (!isJson && state === "running") terminal.print(`Deployment ${id} is being cancelled.`);
  const deployment = await follow(service, id, "silent");
  if (deployment === null) return interruptedExitCode;
  terminal.print(...(isJson ? [JSON.stringify({ deployment })] : endingLines(deployment, terminal)));
  return deployment.state === "cancelled" ? 0 : 1;
}
