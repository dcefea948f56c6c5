import { Argument, type Command, Option } from "commander";
import { branchOf, shortCommit } from "../commit-names.ts";
import type { RequestedJson } from "../control/requests.ts";
import { type CommandContext, newCommand } from "./command.ts";
import { addWaitOptions, type WaitOptions, waitForDeployment } from "./follow.ts";
import { accessService } from "./service-access.ts";

/** `hotpush deploy`: deploys the branch's present head at the remote. Its exit code is 0 if that succeeded. */
export function makeDeployCommand({ env, finish }: CommandContext): Command {
  const description =
    "Deploy what the branch is at the git host now, without a push, even if the same commit is live already. It takes its turn like a push, and supersedes what waits.";
  const command = newCommand("deploy", description, [
    "hotpush deploy                 the branch that was deployed last",
    "hotpush deploy main --detach   do not wait for its end",
  ])
    .addArgument(
      new Argument("[branch]", "default: the one deployed last, else main").choices(["main", "master"]),
    )
    .addOption(new Option("--wait", "show its output until it has ended (the default)").conflicts("detach"));
  return addWaitOptions(command).action(async (ref: string | undefined, options: WaitOptions) => {
    const service = accessService(env, options);
    const requested = await service.post<RequestedJson>("/deployments", { ref });
    const { id, ref: deployed, commit } = requested.deployment;
    const summary = `Deployment ${id} deploys ${branchOf(deployed)} at ${shortCommit(commit)}.`;
    finish(await waitForDeployment(service, requested, summary, options));
  });
}
