import { Argument, type Command, Option } from "commander";
import { callService } from "../control/client.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { asking, reportedUser } from "./ask-service.ts";
import { newCommand, type Surroundings } from "./command.ts";
import { seeThrough } from "./see-through.ts";
import { branchOf, shortCommit } from "./terminal/words.ts";

interface Options {
  readonly detach?: boolean;
  readonly json?: boolean;
}

/** `hotpush deploy`: deploys what the branch is at the remote now. Its exit code is 0 where that succeeded. */
export function makeDeployCommand({ env, finish }: Surroundings): Command {
  const summary =
    "Deploys what the branch is at the git host now, without a push: even where the same commit is live already. It takes its turn like a push, and takes the place of what waits.";
  return newCommand("deploy", summary, [
    "hotpush deploy                 the branch that was deployed last",
    "hotpush deploy main --detach   only ask for it",
  ])
    .addArgument(
      new Argument("[branch]", "default: the one deployed last, else main").choices(["main", "master"]),
    )
    .option("--wait", "show its output until it has ended (the default)")
    .addOption(new Option("--detach", "do not wait; so it is always within a deploy.sh").conflicts("wait"))
    .option("--json", "one JSON object, at the end (docs/cli.md)")
    .action(async (branch: string | undefined, options: Options) =>
      finish(await asking(env, (statePath) => deploy(statePath, branch, options, env))),
    );
}

async function deploy(
  statePath: string,
  branch: string | undefined,
  { detach = false, json = false }: Options,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const body = { ref: branch, ...reportedUser(env) };
  const { deployment } = await callService<{ deployment: DeploymentJson }>(
    statePath,
    "POST",
    "/deployments",
    body,
  );
  const { id, ref, commit } = deployment;
  const said = `Deployment ${id} deploys ${branchOf(ref)} at ${shortCommit(commit)}.`;
  return await seeThrough(deployment, { env, statePath, said, isDetached: detach, isJson: json });
}
