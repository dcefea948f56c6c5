import type { Command } from "commander";
import { openStream } from "../control/client.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { readEvents } from "../control/read-events.ts";
import { isFinished } from "../deployments/states.ts";
import { harmless, openTerminal } from "../platform/terminal/terminal.ts";
import { createLineCutter, lineText } from "../runner/lines.ts";
import { type CommandContext, deploymentId, newCommand, projectOption } from "./command.ts";
import { endingLines } from "./deployment-text.ts";
import { follow, interruptedExitCode } from "./follow.ts";
import { accessService, type ProjectChoice, type ServiceAccess } from "./service-access.ts";

interface LogsOptions extends ProjectChoice {
  readonly follow?: boolean;
  readonly json?: boolean;
}

/** `hotpush logs`: what a deployment printed, and with -f what it prints until it has ended. */
export function makeLogsCommand({ env, finish }: CommandContext): Command {
  const description =
    "Print the output of the running deployment, else of the last one, or of the one with this number. The logs of the last 50 are kept.";
  return newCommand("logs", description, [
    "hotpush logs             the running or the last deployment, so far",
    "hotpush logs -f          until it has ended, with its steps",
    "hotpush logs 7 --json    events of deployment 7, one JSON object a line",
  ])
    .argument("[id]", "the number of a deployment", deploymentId)
    .addOption(projectOption())
    .option("-f, --follow", "go on until the deployment has ended")
    .option("--json", "events, one JSON object a line (docs/cli.md)")
    .action(async (id: number | undefined, options: LogsOptions) =>
      finish(await showLogs(accessService(env, options), id ?? null, options)),
    );
}

async function showLogs(
  service: ServiceAccess,
  id: number | null,
  { follow: isFollowing = false, json = false }: LogsOptions,
): Promise<number> {
  if (isFollowing) {
    const ended = await follow(service, id, json ? "events" : "text");
    return ended === null ? interruptedExitCode : 0;
  }
  await (json ? printEvents(service, id) : printLog(service, id));
  return 0;
}

async function printEvents(service: ServiceAccess, id: number | null): Promise<void> {
  const { place, terminal, ofProject } = service;
  const { signal } = new AbortController();
  for await (const event of readEvents(place, { id, isFollowing: false, ofProject, signal })) {
    terminal.print(JSON.stringify(event));
  }
}

/** Unchanged if it is piped; on a terminal without control sequences. */
async function printLog(service: ServiceAccess, id: number | null): Promise<void> {
  const { place, terminal, ofProject } = service;
  const cutter = createLineCutter((line) => terminal.print(harmless(lineText(line))));
  let isEmpty = true;
  for await (const piece of await openStream(place, ofProject(`/deployments/${id ?? "latest"}/log`))) {
    isEmpty = false;
    if (terminal.isInteractive) cutter.push(piece);
    else process.stdout.write(piece);
  }
  cutter.finish();
  if (isEmpty) process.stderr.write("There is no output: none was printed, or it is no longer kept.\n");
  await printEnding(service, id);
}

/** On standard error, so that a pipe gets the script's output and nothing else. */
async function printEnding({ env, get }: ServiceAccess, id: number | null): Promise<void> {
  const { deployment } = await get<{ deployment: DeploymentJson }>(`/deployments/${id ?? "latest"}`);
  if (!isFinished(deployment.state)) return;
  const terminal = openTerminal(process.stderr, env);
  terminal.print(...endingLines(deployment, terminal));
}
