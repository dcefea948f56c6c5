import { formatDuration } from "../config/duration.ts";
import type { DeploymentJson, StepJson } from "../control/deployment-json.ts";
import type { ControlEvent } from "../control/event-writer.ts";
import { isFinished } from "../deployments/states.ts";
import { type Progress, showProgress } from "../platform/terminal/progress.ts";
import { harmless, type Terminal } from "../platform/terminal/terminal.ts";
import { endingLines, since } from "./deployment-text.ts";

/** Prints what happens to a deployment for a person: its output, its steps with their durations, its end. */
export interface ProgressPrinter {
  readonly print: (event: ControlEvent) => void;
  /** Leaves the terminal as it was, with the cursor at the beginning of a line. */
  readonly end: () => void;
}

export function createProgressPrinter(terminal: Terminal): ProgressPrinter {
  let deployment: DeploymentJson | null = null;
  let step: StepJson | null = null;
  const write = (text: string) => process.stdout.write(text);
  const progress: Progress = showProgress(terminal, write, () => progressText(deployment, step));

  function printDeployment(next: DeploymentJson): void {
    const isFirst = deployment === null;
    const wasFinished = deployment !== null && isFinished(deployment.state);
    deployment = next;
    if (isFinished(next.state)) {
      step = null;
      // The events of a finished deployment begin and end with the same one: only the last is printed.
      if (!isFirst || wasFinished) progress.print(...endingLines(next, terminal));
    } else if (next.state === "queued") progress.print(`Deployment ${next.id} waits for its turn.`);
  }

  function printStep(next: StepJson): void {
    if (next.durationMs === null) step = next;
    else progress.print(terminal.paint("dim", `    ${next.name} took ${formatDuration(next.durationMs)}`));
  }

  return {
    print(event) {
      if (event.event === "deployment") printDeployment(event.deployment);
      else if (event.event === "step") printStep(event.step);
      else if (event.event === "line") progress.print(lineText(event.line, terminal));
      else progress.print(`[${event.lines} lines left out here; hotpush logs has them all]`);
    },
    end: progress.end,
  };
}

function lineText(line: string, { isInteractive, paint }: Terminal): string {
  if (!isInteractive) return line;
  const text = harmless(line);
  return text.startsWith("==> ") ? paint("bold", text) : text;
}

function progressText(deployment: DeploymentJson | null, step: StepJson | null): string {
  if (deployment === null || isFinished(deployment.state)) return "";
  const { id, state, startedAt, createdAt } = deployment;
  if (state !== "running") return `Deployment ${id} waits, for ${since(createdAt)}`;
  const doing = step === null ? "runs" : `${step.name}, for ${since(step.startedAt)}; in all`;
  return `Deployment ${id}: ${doing} ${since(startedAt ?? createdAt)}`;
}
