import type { Command } from "commander";
import { followRun } from "#calls/client";
import type { ControlEvent, DeploymentJson, RequestedJson } from "#calls/shapes";
import { formatDuration } from "#config/values";
import { isFinished } from "#deployments/deployment";
import { harmless, type Terminal, wrapText } from "#platform/terminal";
import { CommandError } from "#problems";
import { stepOf } from "#runner/log-file";
import { type CommandContext, projectOption, untilLeft } from "./command.ts";
import { endingLines, pauseText, waitingLines } from "./deployment-text.ts";
import { accessService, type ProjectChoice, type ServiceAccess } from "./service-access.ts";

/** A deployment that was recorded: `summary` says so in a sentence, and `wanted` is the state in which it should end. */
interface Requested extends RequestedJson {
  readonly summary: string;
  readonly wanted?: DeploymentJson["state"];
}

interface WaitOptions extends ProjectChoice {
  readonly detach?: boolean;
  readonly json?: boolean;
}

/**
 * Lets a command request a deployment, and show it until it has ended. Within a deploy script it never waits, because the
 * deployment runs only when that script has ended. The exit code is 0 if the deployment ended as wanted or is not waited for.
 */
export function requesting(
  command: Command,
  { env, finish }: CommandContext,
  request: (service: ServiceAccess, argument: string | undefined) => Promise<Requested>,
): Command {
  return command
    .addOption(projectOption())
    .option("--detach", "do not wait for its end; always so within a deploy.sh")
    .option("--json", "one JSON object, at the end (docs/cli.md)")
    .action(async (argument: string | undefined, { detach, json, ...whose }: WaitOptions) => {
      const service = accessService(env, whose);
      const { print, columns } = service.terminal;
      const { deployment, paused, summary, wanted = "succeeded" } = await request(service, argument);
      if (!json) print(summary);
      if (paused && !json) print(...wrapText(`It waits, because the queue is ${pauseText(paused)}`, columns));
      const mayWait = !detach && env.DEPLOY_ID === undefined;
      const last = mayWait ? await follow(service, deployment.id, json ? "silent" : "text") : deployment;
      if (last === null) return finish(interruptedExitCode);
      if (json) print(JSON.stringify({ deployment: last }));
      finish(!mayWait || last.state === wanted ? 0 : 1);
    });
}

/** As after a signal: 128 and the number of SIGINT. */
export const interruptedExitCode = 130;

/**
 * Shows what a deployment prints and does until it has ended. Ctrl-C ends the display, not the deployment.
 *
 * @param id null: the deployment that runs, else the last that did
 * @param form `text` for a person, `events` for a program, `silent` to show nothing
 * @param waits false: only what there is so far
 * @returns the deployment as it ended, or so far; or null after Ctrl-C
 * @throws CommandError if the service went away
 */
export function follow(
  { place, terminal, whose }: ServiceAccess,
  id: number | null,
  form: "text" | "events" | "silent",
  waits = true,
): Promise<DeploymentJson | null> {
  return untilLeft(async (signal) => {
    const printText = createPrinter(terminal);
    let last: DeploymentJson | null = null;
    const asked = { ...whose, id: id ?? "latest", follow: waits ? "true" : "false" } as const;
    for await (const event of followRun(place, "events", asked, { signal })) {
      if (form === "events") terminal.print(JSON.stringify(event));
      if (form === "text") printText(event);
      if (event.event === "deployment") last = event.deployment;
    }
    if (last !== null && (isFinished(last.state) || !waits)) return last;
    const again = `hotpush logs -f ${last?.id ?? ""}`.trimEnd();
    if (!signal.aborted) throw new CommandError(`the service went away. When it is back: ${again}`);
    const which = last === null ? "It" : `Deployment ${last.id}`;
    process.stderr.write(`${which} goes on. See it with: ${again}\n`);
    return null;
  });
}

/** Prints what happens to a deployment for a person: its output, its steps with their durations, its end. */
function createPrinter(terminal: Terminal): (event: ControlEvent) => void {
  let step: { readonly name: string; readonly startedAt: string } | null = null;
  let told = "";
  const beginStep = (name: string | null, atTime: string | null) => {
    if (step !== null && atTime !== null) {
      const took = formatDuration(Math.max(0, Date.parse(atTime) - Date.parse(step.startedAt)));
      terminal.print(terminal.paint("dim", `    ${step.name} took ${took}`));
    }
    step = name !== null && atTime !== null ? { name, startedAt: atTime } : null;
  };
  return (event) => {
    if (event.event === "line") {
      const name = stepOf(event.line);
      if (name !== null) beginStep(name, event.printedAt);
      const line = harmless(event.line);
      return terminal.print(name === null ? line : terminal.paint("bold", line));
    }
    const { deployment } = event;
    // It is not told again after each question to the remote.
    const lines = deployment.state === "queued" ? waitingLines(deployment, terminal) : [];
    if (lines.join() !== told) terminal.print(...lines);
    if (lines.length > 0) told = lines.join();
    if (!isFinished(deployment.state)) return;
    beginStep(null, deployment.finishedAt);
    terminal.print(...endingLines(deployment, terminal));
  };
}
