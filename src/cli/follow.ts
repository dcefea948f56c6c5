import type { Command } from "commander";
import { followRun } from "#calls/client";
import type { ControlEvent, DeploymentJson, LineJson, RequestedJson } from "#calls/shapes";
import { formatDuration } from "#config/values";
import { isFinished } from "#deployments/deployment";
import { harmless, showProgress, type Terminal, wrapText } from "#platform/terminal";
import { CommandError } from "#problems";
import { stepOf } from "#runner/log-file";
import { projectOption, untilLeft } from "./command.ts";
import { endingLines, pauseText, since } from "./deployment-text.ts";
import type { ServiceAccess } from "./service-access.ts";

/** The options of a command that requests a deployment. */
export interface WaitOptions {
  readonly project?: string;
  readonly detach?: boolean;
  readonly json?: boolean;
}

export function addWaitOptions(command: Command): Command {
  return command
    .addOption(projectOption())
    .option("--detach", "do not wait for its end; always so within a deploy.sh")
    .option("--json", "one JSON object, at the end (docs/cli.md)");
}

/**
 * Shows a deployment that a command has just requested until it has ended. Within a deploy script it never waits,
 * because the deployment runs only when that script has ended.
 *
 * @param summary what was recorded, in a sentence
 * @param wanted the state in which it should end
 * @returns the exit code: 0 if the deployment ended as wanted or is not waited for, else 1
 */
export async function waitForDeployment(
  service: ServiceAccess,
  { deployment, paused }: RequestedJson,
  summary: string,
  { detach, json }: WaitOptions,
  wanted: DeploymentJson["state"] = "succeeded",
): Promise<number> {
  const { print, columns } = service.terminal;
  const printJson = (value: DeploymentJson) => print(JSON.stringify({ deployment: value }));
  if (!json) print(summary);
  if (paused && !json) print(...wrapText(`It waits, because the queue is ${pauseText(paused)}`, columns));
  if (detach || service.env.DEPLOY_ID !== undefined) {
    if (json) printJson(deployment);
    return 0;
  }
  const ended = await follow(service, deployment.id, json ? "silent" : "text");
  if (ended === null) return interruptedExitCode;
  if (json) printJson(ended);
  return ended.state === wanted ? 0 : 1;
}

/** As after a signal: 128 and the number of SIGINT. */
export const interruptedExitCode = 130;

/**
 * Shows what a deployment prints and does until it has ended. Ctrl-C ends the display, not the deployment.
 *
 * @param id null: the deployment that runs, else the last that did
 * @param form `text` for a person, `events` for a program, `silent` to show nothing
 * @returns the deployment as it ended, or null after Ctrl-C
 * @throws CommandError if the service went away
 */
export function follow(
  { place, terminal, whose }: ServiceAccess,
  id: number | null,
  form: "text" | "events" | "silent",
): Promise<DeploymentJson | null> {
  return untilLeft(async (signal) => {
    const printer = form === "text" ? createProgressPrinter(terminal) : null;
    let last: DeploymentJson | null = null;
    try {
      const asked = { ...whose, id: id ?? "latest" } as const;
      for await (const event of followRun(place, "events", asked, { signal })) {
        if (form === "events") terminal.print(JSON.stringify(event));
        printer?.print(event);
        if (event.event === "deployment") last = event.deployment;
      }
    } finally {
      printer?.end();
    }
    if (last !== null && isFinished(last.state)) return last;
    const again = `hotpush logs -f ${last?.id ?? ""}`.trimEnd();
    if (!signal.aborted) throw new CommandError(`the service went away. When it is back: ${again}`);
    const which = last === null ? "It" : `Deployment ${last.id}`;
    process.stderr.write(`${which} goes on. See it with: ${again}\n`);
    return null;
  });
}

interface Step {
  readonly name: string;
  readonly startedAt: string;
}

/**
 * Prints what happens to a deployment for a person: its output, its steps with their durations, its end. `end` leaves the
 * terminal as it was, with the cursor at the beginning of a line.
 */
function createProgressPrinter(terminal: Terminal) {
  let deployment: DeploymentJson | null = null;
  let step: Step | null = null;
  const write = (text: string) => process.stdout.write(text);
  const { print, end } = showProgress(terminal, write, () => progressText(deployment, step));

  function printDeployment(next: DeploymentJson): void {
    deployment = next;
    if (next.state === "queued") print(`Deployment ${next.id} waits for its turn.`);
    if (!isFinished(next.state)) return;
    beginStep(null, next.finishedAt);
    print(...endingLines(next, terminal));
  }

  function printLine({ line, printedAt }: LineJson): void {
    const name = stepOf(line);
    if (name !== null) beginStep(name, printedAt);
    print(name === null ? harmless(line) : terminal.paint("bold", harmless(line)));
  }

  function beginStep(name: string | null, atTime: string | null): void {
    if (step !== null && atTime !== null) {
      const took = formatDuration(Math.max(0, Date.parse(atTime) - Date.parse(step.startedAt)));
      print(terminal.paint("dim", `    ${step.name} took ${took}`));
    }
    step = name !== null && atTime !== null ? { name, startedAt: atTime } : null;
  }

  const printEvent = (event: ControlEvent) =>
    event.event === "deployment" ? printDeployment(event.deployment) : printLine(event);
  return { end, print: printEvent };
}

function progressText(deployment: DeploymentJson | null, step: Step | null): string {
  if (deployment === null || isFinished(deployment.state)) return "";
  const { id, state, startedAt, createdAt } = deployment;
  if (state !== "running") return `Deployment ${id} waits, for ${since(createdAt)}`;
  const doing = step === null ? "runs" : `${step.name}, for ${since(step.startedAt)}; in all`;
  return `Deployment ${id}: ${doing} ${since(startedAt ?? createdAt)}`;
}
