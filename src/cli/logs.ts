import { type Command, InvalidArgumentError } from "commander";
import { callService, openStream, readEvents } from "../control/client.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { isFinished } from "../deployments/states.ts";
import { harmless, openTerminal } from "../platform/terminal/terminal.ts";
import { createLineCutter } from "../runner/lines.ts";
import { asking } from "./ask-service.ts";
import { newCommand, type Surroundings } from "./command.ts";
import { follow } from "./follow.ts";
import { endingLines } from "./storyteller.ts";

interface Options {
  readonly follow?: boolean;
  readonly json?: boolean;
}

/** `hotpush logs`: what a deployment printed, and with -f what it prints until it has ended. */
export function makeLogsCommand({ env, finish }: Surroundings): Command {
  const summary =
    "Prints the output of a deployment: of the one that runs, else of the last, or of the one with this number. The logs of the last 50 are kept.";
  return newCommand("logs", summary, [
    "hotpush logs             the running or the last deployment, so far",
    "hotpush logs -f          until it has ended, with its steps",
    "hotpush logs 7 --json    events of deployment 7, one JSON object a line",
  ])
    .argument("[id]", "the number of a deployment", deploymentId)
    .option("-f, --follow", "go on until the deployment has ended")
    .option("--json", "events, one JSON object a line (docs/cli.md)")
    .action(async (id: number | undefined, options: Options) =>
      finish(await asking(env, (statePath) => showLogs(statePath, id ?? null, options, env))),
    );
}

/** Reads the number of a deployment from the command line. */
export function deploymentId(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Not the number of a deployment.");
}

async function showLogs(
  statePath: string,
  id: number | null,
  { follow: isFollowing = false, json = false }: Options,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  if (!isFollowing && !json) return await printLog(statePath, id, env);
  if (!isFollowing) return await printEvents(statePath, id, env);
  const followed = await follow({ env, statePath, id, form: json ? "events" : "text" });
  return followed.kind === "finished" ? 0 : followed.exitCode;
}

/** As it stands where it is piped; on a terminal without what could steer it. */
async function printLog(statePath: string, id: number | null, env: NodeJS.ProcessEnv): Promise<number> {
  const terminal = openTerminal(process.stdout, env);
  const cutter = createLineCutter((line) => terminal.print(harmless(line)));
  let isEmpty = true;
  for await (const piece of await openStream(statePath, `/deployments/${id ?? "latest"}/log`)) {
    isEmpty = false;
    if (terminal.isInteractive) cutter.push(piece);
    else process.stdout.write(piece);
  }
  cutter.finish();
  if (isEmpty) process.stderr.write("There is no output: none was printed, or it is not kept any more.\n");
  await printEnding(statePath, id, env);
  return 0;
}

/** On standard error, so that what is piped is the script's output and nothing else. */
async function printEnding(statePath: string, id: number | null, env: NodeJS.ProcessEnv): Promise<void> {
  const path = `/deployments/${id ?? "latest"}`;
  const { deployment } = await callService<{ deployment: DeploymentJson }>(statePath, "GET", path);
  if (!isFinished(deployment.state)) return;
  const terminal = openTerminal(process.stderr, env);
  terminal.print(...endingLines(deployment, terminal));
}

async function printEvents(statePath: string, id: number | null, env: NodeJS.ProcessEnv): Promise<number> {
  const { signal } = new AbortController();
  const terminal = openTerminal(process.stdout, env);
  for await (const event of readEvents(statePath, { id, isFollowing: false, signal })) {
    terminal.print(JSON.stringify(event));
  }
  return 0;
}
