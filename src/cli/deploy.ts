import { Argument, type Command, Option } from "commander";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { type CommandContext, newCommand } from "./command.ts";
import { branchOf, shortCommit } from "./deployment-text.ts";
import { waitForDeployment } from "./wait-for-deployment.ts";
import { reportedUser, type ServiceAccess, withService } from "./with-service.ts";

interface DeployOptions {
  readonly detach?: boolean;
  readonly json?: boolean;
}

/** `hotpush deploy`: deploys the branch's present head at the remote. Its exit code is 0 if that succeeded. */
export function makeDeployCommand({ env, finish }: CommandContext): Command {
  const description =
    "Deploy what the branch is at the git host now, without a push, even if the same commit is live already. It takes its turn like a push, and supersedes what waits.";
  return newCommand("deploy", description, [
    "hotpush deploy                 the branch that was deployed last",
    "hotpush deploy main --detach   do not wait for its end",
  ])
    .addArgument(
      new Argument("[branch]", "default: the one deployed last, else main").choices(["main", "master"]),
    )
    .option("--wait", "show its output until it has ended (the default)")
    .addOption(
      new Option("--detach", "do not wait for its end; always so within a deploy.sh").conflicts("wait"),
    )
    .option("--json", "one JSON object, at the end (docs/cli.md)")
    .action(async (branch: string | undefined, options: DeployOptions) =>
      finish(await withService(env, (service) => deploy(service, branch, options))),
    );
}

async function deploy(
  service: ServiceAccess,
  branch: string | undefined,
  { detach: isDetached = false, json: isJson = false }: DeployOptions,
): Promise<number> {
  const body = { ref: branch, ...reportedUser(service.env) };
  const { deployment } = await service.call<{ deployment: DeploymentJson }>("POST", "/deployments", body);
  const { id, ref, commit } = deployment;
  const summary = `Deployment ${id} deploys ${branchOf(ref)} at ${shortCommit(commit)}.`;
  return await waitForDeployment(service, deployment, { summary, isDetached, isJson });
}
