import { Argument, type Command } from "commander";
import { NotRunningError } from "#calls/client";
import { branchOf, shortCommit } from "#deployments/push";
import { type CommandContext, deploymentId, newCommand, projectOption } from "./command.ts";
import { endingLines, pauseText } from "./deployment-text.ts";
import { follow, interruptedExitCode, requesting } from "./follow.ts";
import { accessService, answering, type ProjectChoice } from "./service-access.ts";

export const commands = {
  deploy: makeDeployCommand,
  cancel: makeCancelCommand,
  pause: makePauseCommand,
  resume: makeResumeCommand,
  rollback: makeRollbackCommand,
};

/** `hotpush deploy`: deploys the branch's present head at the remote. Its exit code is 0 if that succeeded. */
function makeDeployCommand(context: CommandContext): Command {
  const description =
    "Deploy what the branch is at the git host now, without a push, even if the same commit is live already. It takes its turn like a push, and supersedes what waits.";
  const command = newCommand("deploy", description, [
    "hotpush deploy   the branch that was deployed last",
  ]).addArgument(
    new Argument("[branch]", "default: the one deployed last, else main").choices(["main", "master"]),
  );
  return requesting(command, context, async ({ call }, ref) => {
    const requested = await call("deploy", { ref });
    const { id, ref: deployed, commit } = requested.deployment;
    const summary = `Deployment ${id} deploys ${branchOf(deployed)} at ${shortCommit(commit)}.`;
    return { ...requested, summary };
  });
}

interface CancelOptions extends ProjectChoice {
  readonly json?: boolean;
}

/** `hotpush cancel`: its exit code is 0 if the deployment was cancelled, 1 if it ended in another way. */
function makeCancelCommand({ env, finish }: CommandContext): Command {
  const description =
    "Cancel the running deployment, else the next one in the queue, or the one with this number. A running script is terminated (SIGTERM), and killed after 15 s; what it has done so far stays.";
  return newCommand("cancel", description, [
    "hotpush cancel     the running deployment",
    "hotpush cancel 7   deployment 7, running or queued",
  ])
    .argument("[id]", "the number of a deployment", deploymentId)
    .addOption(projectOption())
    .option("--json", "one JSON object, at the end (docs/cli.md)")
    .action(async (wanted: number | undefined, { json, ...whose }: CancelOptions) => {
      const service = accessService(env, whose);
      const { print } = service.terminal;
      const { id, state } = (await service.call("cancel", { id: wanted ?? "latest" })).deployment;
      if (!json && state === "running") print(`Deployment ${id} is being cancelled.`);
      const deployment = await follow(service, id, "silent");
      if (deployment === null) return finish(interruptedExitCode);
      print(...(json ? [JSON.stringify({ deployment })] : endingLines(deployment, service.terminal)));
      finish(deployment.state === "cancelled" ? 0 : 1);
    });
}

/** `hotpush rollback`: has the service roll back, and shows the output. Its exit code is 0 if the earlier version serves. */
function makeRollbackCommand(context: CommandContext): Command {
  const description =
    "Roll back to an earlier good version without a build: the previous one, or that of a deployment (by its number) or of a commit (by its first digits). The service runs this as a deployment of its own, when the running one has ended. Newer commits are not deployed until the next push.";
  const command = newCommand("rollback", description, [
    "hotpush rollback           the previous good version",
    "hotpush rollback 7         the version of deployment 7",
    "hotpush rollback 3f2c1a9   the version of this commit",
  ]).argument("[version]", "a deployment's number, or a commit");
  return requesting(command, context, async ({ call }, wanted) => {
    const requested = await call("rollback", { version: wanted }).catch((error: unknown) => {
      if (!(error instanceof NotRunningError) || error.isForbidden) throw error;
      throw new NotRunningError(`${error.message}. Without the service: hotpush rollout --back`, error);
    });
    const { id, commit, trigger } = requested.deployment;
    if (trigger === "rollback") return { ...requested, summary: `Deployment ${id} goes back to ${commit}.` };
    const summary = `Deployment ${id} was still guarded. It fails now: the version before it gets the requests again.`;
    return { ...requested, summary, wanted: "failed" };
  });
}

/** `hotpush pause`: pushes are recorded, and wait. */
function makePauseCommand(context: CommandContext): Command {
  const description =
    "Hold the queue of the project: pushes are recorded, and wait until hotpush resume. A running deployment goes on.";
  const command = newCommand("pause", description, ["hotpush pause --reason 'the database is being moved'"])
    .addOption(projectOption())
    .option("--reason <text>", "why, for the people who read the status");
  return answering(command, context, async ({ call }, { reason }: { readonly reason?: string }) => {
    const answer = await call("pause", { reason });
    const state = answer.paused ? pauseText(answer.paused) : "not paused";
    return { answer, lines: () => [`The queue of ${answer.project} is ${state}`] };
  });
}

/** `hotpush resume`: what waits is deployed. */
function makeResumeCommand(context: CommandContext): Command {
  const command = newCommand("resume", "Let the queue of the project go on after hotpush pause.", [
    "hotpush resume",
  ]).addOption(projectOption());
  return answering(command, context, async ({ call }) => {
    const answer = await call("resume", {});
    return { answer, lines: () => [`The queue of ${answer.project} goes on.`] };
  });
}
