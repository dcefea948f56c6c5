import type { Command } from "commander";
import { callService } from "../control/client.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { openTerminal } from "../platform/terminal/terminal.ts";
import { asking, reportedUser } from "./ask-service.ts";
import { newCommand, type Surroundings } from "./command.ts";
import { follow } from "./follow.ts";
import { deploymentId } from "./logs.ts";
import { endingLines } from "./storyteller.ts";

/** `hotpush cancel`: ends a deployment early. Its exit code is 0 where it was cancelled, 1 where it had ended otherwise. */
export function makeCancelCommand({ env, finish }: Surroundings): Command {
  const summary =
    "Cancels the deployment that runs, else the one whose turn is next, or the one with this number. A running script is asked to end (SIGTERM), and forced to after 15 s; what it has done so far stays.";
  return newCommand("cancel", summary, [
    "hotpush cancel     what runs now",
    "hotpush cancel 7   deployment 7, be it running or waiting",
  ])
    .argument("[id]", "the number of a deployment", deploymentId)
    .option("--json", "one JSON object, at the end (docs/cli.md)")
    .action(async (id: number | undefined, { json }: { readonly json?: boolean }) =>
      finish(await asking(env, (statePath) => cancel(statePath, id, json ?? false, env))),
    );
}

async function cancel(
  statePath: string,
  wanted: number | undefined,
  isJson: boolean,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const path = `/deployments/${wanted ?? "latest"}/cancel`;
  const { deployment: asked } = await callService<{ deployment: DeploymentJson }>(
    statePath,
    "POST",
    path,
    reportedUser(env),
  );
  const terminal = openTerminal(process.stdout, env);
  if (!isJson && asked.state === "running") terminal.print(`Deployment ${asked.id} is asked to end.`);
  const followed = await follow({ env, statePath, id: asked.id, form: "silent" });
  if (followed.kind === "left") return followed.exitCode;
  const { deployment } = followed;
  terminal.print(...(isJson ? [JSON.stringify({ deployment })] : endingLines(deployment, terminal)));
  return deployment.state === "cancelled" ? 0 : 1;
}
