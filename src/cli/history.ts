import type { Command } from "commander";
import { followRun } from "#calls/client";
import type { DeploymentJson, ServiceLogEvent } from "#calls/shapes";
import { formatDuration } from "#config/values";
import { branchOf } from "#deployments/push";
import { fit, formatTable, harmless, type Terminal } from "#platform/terminal";
import { CommandError } from "#problems";
import { failedText } from "#site-requests";
import {
  type CommandContext,
  deploymentId,
  newCommand,
  numberParser,
  projectOption,
  untilLeft,
} from "./command.ts";
import { commitText, localTime, originText, stateText, waitingLines } from "./deployment-text.ts";
import { follow, interruptedExitCode } from "./follow.ts";
import { accessService, answering, type ProjectChoice, type ServiceAccess } from "./service-access.ts";

export const commands = { history: makeHistoryCommand, logs: makeLogsCommand };

/** `hotpush history`: the newest deployments, newest first. */
function makeHistoryCommand(context: CommandContext): Command {
  const description =
    "List the newest deployments, newest first: of the project, or of all. The last 1,000 are kept.";
  const limit = numberParser(1, 1_000, "Not a number from 1 to 1,000.");
  const command = newCommand("history", description, [
    "hotpush history --limit 1000 --json   all of them for a program",
  ])
    .addOption(projectOption())
    .option("--limit <n>", "how many, at most 1,000", limit, 20);
  return answering(command, context, async ({ call }, { limit }: { readonly limit: number }) => {
    const answer = await call("history", { limit });
    return { answer, lines: (terminal) => historyLines(answer.deployments, terminal) };
  });
}

/** Two lines for each deployment: how it went, and what it deployed for whom. */
function historyLines(
  deployments: readonly DeploymentJson[],
  { paint, columns }: Terminal,
): readonly string[] {
  if (deployments.length === 0) return ["Nothing was deployed yet. Push to main, or run: hotpush deploy"];
  // The name is the last column, so that only a long one is cut.
  const header = ["Id", "State", "Trigger", "Branch", "Recorded", "Took", "Failed", "Project"];
  const cells = deployments.map((deployment) => {
    const { id, trigger, ref, createdAt, durationMs, requests, project } = deployment;
    const took = durationMs === null ? "" : formatDuration(durationMs);
    const failed = requests === null ? "" : failedText(requests);
    const state = stateText(deployment);
    return [String(id), state, trigger, branchOf(ref), localTime(createdAt), took, failed, project];
  });
  const table = formatTable([header, ...cells]).map((line) => fit(line, columns));
  const [first = "", rule = "", ...lines] = table;
  const painted = deployments.flatMap((deployment, index) => [
    lines[index]?.replace(stateText(deployment), stateText(deployment, paint)) ?? "",
    fit(indent + whatLine(deployment, columns - indent.length), columns),
  ]);
  return [paint("bold", first), paint("dim", rule), ...painted];
}

const indent = "    ";

function whatLine(deployment: DeploymentJson, columns: number): string {
  const commit = commitText(deployment);
  const left = columns - commit.length - 2;
  const why = deployment.skipReason ?? deployment.waitReason;
  return `${commit}  ${why === null ? originText(deployment, left) : fit(why, left)}`.trimEnd();
}

interface LogsOptions extends ProjectChoice {
  readonly service?: string;
  readonly follow?: boolean;
  readonly tail?: number;
  readonly json?: boolean;
}

/** `hotpush logs`: what a deployment printed, and with -f what it prints until it has ended. */
function makeLogsCommand({ env, finish }: CommandContext): Command {
  const description =
    "Print the output of the running deployment, else of the last one, or of the one with this number. Also show which pushes wait, and why. The logs of the last 50 are kept. With --service, print what the containers of a service print.";
  const lines = numberParser(0, 10_000, "Not a number from 0 to 10,000.");
  return newCommand("logs", description, [
    "hotpush logs                    the running or the last deployment, so far",
    "hotpush logs -f                 until it has ended, with its steps",
    "hotpush logs 7 --json           events of deployment 7, one JSON object a line",
    "hotpush logs --service web -f   what its containers print, across roll-outs",
  ])
    .argument("[id]", "the number of a deployment", deploymentId)
    .addOption(projectOption())
    .option("-f, --follow", "go on until the deployment has ended")
    .option("--service <name>", "what the containers of this service print")
    .option("--tail <n>", "of each container so many of the last lines (default: 100)", lines)
    .option("--json", "events, one JSON object a line (docs/cli.md)")
    .action(async (id: number | undefined, { service, ...options }: LogsOptions, command: Command) => {
      if (service === undefined && options.tail !== undefined)
        command.error("error: --tail is for what containers print: give --service, too.");
      if (service !== undefined && id !== undefined)
        command.error("error: give the number of a deployment, or --service, not both.");
      const access = accessService(env, options);
      if (service === undefined) {
        const shown = await follow(
          access,
          id ?? null,
          options.json ? "events" : "text",
          options.follow === true,
        );
        if (id === undefined && !options.json && shown !== null) await printWaiting(access, shown.id);
        return finish(shown === null ? interruptedExitCode : 0);
      }
      return finish(await showServiceLog(access, service, options));
    });
}

/** Prints why pushes wait: else the output of an older deployment would look like that of the last push. */
async function printWaiting({ call, terminal }: ServiceAccess, shownId: number): Promise<void> {
  const { waiting } = await call("status", {});
  for (const one of waiting) if (one.id !== shownId) terminal.print(...waitingLines(one, terminal));
}

/** Prints what the containers of a service have printed, each line behind the name of its container; `follow`: until Ctrl-C. */
function showServiceLog(
  { place, terminal, whose }: ServiceAccess,
  service: string,
  { follow: isFollowing = false, tail = 100, json = false }: LogsOptions,
): Promise<number> {
  const follow = isFollowing ? "true" : "false";
  return untilLeft(async (signal) => {
    const asked = { ...whose, service, tail, follow } as const;
    for await (const event of followRun(place, "serviceLog", asked, { signal }))
      terminal.print(json ? JSON.stringify(event) : serviceLogText(event, terminal));
    if (signal.aborted) return interruptedExitCode;
    if (!isFollowing) return 0;
    throw new CommandError(`the service went away. When it is back: hotpush logs --service ${service} -f`);
  });
}

function serviceLogText(event: ServiceLogEvent, { paint }: Terminal): string {
  if (event.event === "line") return `${paint("bold", event.container)} | ${harmless(event.line)}`;
  const { container, state, detail } = event;
  const what = state === "unreadable" ? `cannot be read: ${harmless(detail ?? "")}` : `has ${state}`;
  return paint("dim", `${container} ${what}`);
}
