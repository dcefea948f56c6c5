import { formatDuration } from "../config/duration.ts";
import type { DeploymentJson, StepJson } from "../control/deployment-json.ts";
import type { ControlEvent } from "../control/event-writer.ts";
import { isFinished } from "../deployments/states.ts";
import { type Progress, showProgress } from "../platform/terminal/progress.ts";
import { harmless, type Terminal } from "../platform/terminal/terminal.ts";
import { wrapText } from "../platform/terminal/wrap.ts";
import { commitText, reportedText } from "./terminal/origin.ts";
import { branchOf, since, states } from "./terminal/words.ts";

/** Tells a person what becomes of a deployment: its output, its steps with their durations, its end. */
export interface Storyteller {
  readonly tell: (event: ControlEvent) => void;
  /** Leaves the terminal as it was found, with the cursor at the beginning of a line. */
  readonly end: () => void;
}

export function createStoryteller(terminal: Terminal): Storyteller {
  let deployment: DeploymentJson | null = null;
  let step: StepJson | null = null;
  const write = (text: string) => process.stdout.write(text);
  const progress: Progress = showProgress(terminal, write, () => progressText(deployment, step));

  function tellDeployment(next: DeploymentJson): void {
    const isFirst = deployment === null;
    const wasFinished = deployment !== null && isFinished(deployment.state);
    deployment = next;
    if (isFinished(next.state)) {
      step = null;
      // A deployment that is over begins and ends with the same word.
      if (!isFirst || wasFinished) progress.print(...endingLines(next, terminal));
    } else if (next.state === "queued") progress.print(`Deployment ${next.id} waits for its turn.`);
  }

  function tellStep(next: StepJson): void {
    if (next.durationMs === null) step = next;
    else progress.print(terminal.paint("dim", `    ${next.name} took ${formatDuration(next.durationMs)}`));
  }

  return {
    tell(event) {
      switch (event.event) {
        case "deployment":
          return tellDeployment(event.deployment);
        case "step":
          return tellStep(event.step);
        case "line":
          return progress.print(lineText(event.line, terminal));
        case "skipped":
          return progress.print(`[${event.lines} lines left out here; hotpush logs has them all]`);
      }
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

/** How a deployment ended, and why where it did not succeed. */
export function endingLines(deployment: DeploymentJson, { paint, columns }: Terminal): readonly string[] {
  const { id, state, ref, durationMs, problem } = deployment;
  const { text, colour } = states[state];
  const took = durationMs === null ? "" : ` after ${formatDuration(durationMs)}`;
  const what = state === "succeeded" ? `: ${branchOf(ref)} is at ${commitText(deployment)}` : "";
  const first = `Deployment ${id} ${state === "cancelled" || state === "superseded" ? "was " : ""}${paint(colour, text)}${byWhat(deployment)}${took}${what}.`;
  const reasons = problem?.detail.split("\n") ?? [];
  return [first, ...reasons.flatMap((line) => wrapText(harmless(line), columns))];
}

function byWhat({ state, supersededBy, cancelledBy }: DeploymentJson): string {
  if (supersededBy !== null) return ` by deployment ${supersededBy}`;
  return state === "cancelled" && cancelledBy !== null ? ` by ${reportedText(cancelledBy)}` : "";
}
