import { Argument, type Command, Option } from "commander";
import { NotRunningError } from "#calls/client";
import { branchOf, shortCommit } from "#commit-names";
import { type CommandContext, deploymentId, newCommand, parser, projectOption } from "./command.ts";
import { endingLines, pauseText } from "./deployment-text.ts";
import {
  addWaitOptions,
  follow,
  interruptedExitCode,
  type WaitOptions,
  waitForDeployment,
} from "./follow.ts";
import { accessService, type ProjectChoice } from "./service-access.ts";

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
    const requested = await service.call("deploy", { ref });
    const { id, ref: deployed, commit } = requested.deployment;
    const summary = `Deployment ${id} deploys ${branchOf(deployed)} at ${shortCommit(commit)}.`;
    finish(await waitForDeployment(service, requested, summary, options));
  });
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
    .action(async (wanted: number | undefined, { json, ...choice }: JsonOptions) => {
      const service = accessService(env, choice);
      const { print } = service.terminal;
      const { id, state } = (await service.call("cancel", { id: wanted ?? "latest" })).deployment;
      if (!json && state === "running") print(`Deployment ${id} is being cancelled.`);
      const deployment = await follow(service, id, "silent");
      if (deployment === null) return finish(interruptedExitCode);
      print(...(json ? [JSON.stringify({ deployment })] : endingLines(deployment, service.terminal)));
      finish(deployment.state === "cancelled" ? 0 : 1);
    });
}

interface JsonOptions extends ProjectChoice {
  readonly reason?: string;
  readonly json?: boolean;
}

/** `hotpush rollback`: has the service roll back, and shows the output. Its exit code is 0 if the earlier version serves. */
export function makeRollbackCommand({ env, finish }: CommandContext): Command {
  const description =
    "Roll back to an earlier good version without a build: the previous one, or that of a deployment (by its number) or of a commit (by its first digits). The service runs this as a deployment of its own, when the running one has ended. Newer commits are not deployed until the next push.";
  const version = parser(
    (text) => (/^[0-9a-f]{1,64}$/i.test(text) ? text : null),
    "Neither a deployment's number nor a commit.",
  );
  const command = newCommand("rollback", description, [
    "hotpush rollback           the previous good version",
    "hotpush rollback 7         the version of deployment 7",
    "hotpush rollback 3f2c1a9   the version of this commit",
  ]).argument("[version]", "a deployment's number, or a commit", version);
  return addWaitOptions(command).action(async (wanted: string | undefined, options: WaitOptions) => {
    const service = accessService(env, options);
    const requested = await service.call("rollback", { version: wanted }).catch((error: unknown) => {
      if (!(error instanceof NotRunningError) || error.isForbidden) throw error;
      throw new NotRunningError(`${error.message}. Without the service: hotpush rollout --back`, error);
    });
    const { id, commit, trigger } = requested.deployment;
    const isNew = trigger === "rollback";
    const summary = isNew
      ? `Deployment ${id} goes back to ${commit}.`
      : `Deployment ${id} was still guarded. It fails now: the version before it gets the requests again.`;
    finish(await waitForDeployment(service, requested, summary, options, isNew ? "succeeded" : "failed"));
  });
}

/** `hotpush pause`: pushes are recorded, and wait. */
export function makePauseCommand({ env, finish }: CommandContext): Command {
  const description =
    "Hold the queue of the project: pushes are recorded, and wait until hotpush resume. A running deployment goes on.";
  return newCommand("pause", description, [
    "hotpush pause --reason 'the database is being moved'",
    "hotpush pause --project shop",
  ])
    .addOption(projectOption())
    .option("--reason <text>", "why, for the people who read the status")
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ reason, json, ...choice }: JsonOptions) => {
      const { call, terminal } = accessService(env, choice);
      const answer = await call("pause", { reason });
      const text = `The queue of ${answer.project} is ${answer.paused ? pauseText(answer.paused) : "not paused"}`;
      terminal.print(json ? JSON.stringify(answer) : text);
      finish(0);
    });
}

/** `hotpush resume`: what waits is deployed. */
export function makeResumeCommand({ env, finish }: CommandContext): Command {
  return newCommand("resume", "Let the queue of the project go on after hotpush pause.", [
    "hotpush resume",
    "hotpush resume --project shop",
  ])
    .addOption(projectOption())
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ json, ...choice }: JsonOptions) => {
      const { call, terminal } = accessService(env, choice);
      const answer = await call("resume", {});
      terminal.print(json ? JSON.stringify(answer) : `The queue of ${answer.project} goes on.`);
      finish(0);
    });
}
