import type { Command } from "commander";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { type CommandContext, deploymentId, newCommand } from "./command.ts";
import { endingLines } from "./deployment-text.ts";
import { follow } from "./wait-for-deployment.ts";
import { reportedUser, type ServiceAccess, withService } from "./with-service.ts";

/** `hotpush cancel`: its exit code is 0 if the deployment was cancelled, 1 if it ended in another way. */
export function makeCancelCommand({ env, finish }: CommandContext): Command {
  const description =
    "Cancel the running deployment, else the next one in the queue, or the one with this number. A running script is terminated (SIGTERM), and killed after 15 s; what it has done so far stays.";
  return newCommand("cancel", description, [
    "hotpush cancel     the running deployment",
    "hotpush cancel 7   deployment 7, running or queued",
  ])
    .argument("[id]", "the number of a deployment", deploymentId)
    .option("--json", "one JSON object, at the end (docs/cli.md)")
    .action(async (id: number | undefined, { json = false }: { readonly json?: boolean }) =>
      finish(await withService(env, (service) => cancel(service, id, json))),
    );
}

async function cancel(service: ServiceAccess, wanted: number | undefined, isJson: boolean): Promise<number> {
  const { call, env, terminal } = service;
  const path = `/deployments/${wanted ?? "latest"}/cancel`;
  const answer = await call<{ deployment: DeploymentJson }>("POST", path, reportedUser(env));
  const { id, state } = answer.deployment;
  if (!isJson && state === "running") terminal.print(`Deployment ${id} is being cancelled.`);
  const followed = await follow(service, id, "silent");
  if (followed.kind === "left") return followed.exitCode;
  const { deployment } = followed;
  terminal.print(...(isJson ? [JSON.stringify({ deployment })] : endingLines(deployment, terminal)));
  return deployment.state === "cancelled" ? 0 : 1;
}
