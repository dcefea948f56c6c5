import { formatDuration } from "../../config/duration.ts";
import { control } from "../../platform/terminal/output.ts";
import { withoutSteering } from "../../platform/terminal/printable.ts";
import { reportText } from "./format.ts";
import type { Report, RolloutEvent } from "./report.ts";

const eraseBelow = control("J");

/**
 * Prints events on a terminal: each service has a line at the bottom, which grows with its steps. All else comes above, as
 * `reportText` prints it. In the end these lines stay.
 *
 * @param columns the width of the terminal
 */
export function reportLiveLines(write: (text: string) => void, columns: number): Report {
  const steps = new Map<string, readonly string[]>();
  let shown = 0;

  function erased(): string {
    return shown === 0 ? "" : `${control(`${shown}A`)}${eraseBelow}`;
  }

  function lines(): string {
    return [...steps].map(([service, done]) => `${lineOf(service, done, columns)}\n`).join("");
  }

  return (event) => {
    const step = stepOf(event);
    if (step !== null) steps.set(step.service, [...(steps.get(step.service) ?? []), step.text]);
    const other = step === null ? textOf(event) : "";
    const isOver = event.event === "finished" || event.event === "failed";
    write(isOver ? `${erased()}${lines()}${other}` : `${erased()}${other}${lines()}`);
    shown = isOver ? 0 : steps.size;
    if (isOver) steps.clear();
  };
}

function stepOf(event: RolloutEvent): { readonly service: string; readonly text: string } | null {
  if (event.event === "guarding")
    return { service: event.service, text: `guarded for ${formatDuration(event.guardMs)}` };
  if (event.event !== "step" || event.service === null) return null;
  const failed = event.detail === "FAILED" ? " FAILED" : "";
  return { service: event.service, text: `${event.step} ${formatDuration(event.durationMs)}${failed}` };
}

/** A line that the terminal would break could not be erased as one. Its newest steps stay. */
function lineOf(service: string, done: readonly string[], columns: number): string {
  const name = `  ${withoutSteering(service, { kept: "" }).padEnd(14)} `;
  const text = done.join(", ");
  const room = Math.max(0, columns - 1 - name.length);
  return (name + (text.length > room ? `…${text.slice(text.length - room + 1)}` : text)).slice(
    0,
    columns - 1,
  );
}

function textOf(event: RolloutEvent): string {
  const texts: string[] = [];
  reportText((text) => texts.push(text))(event);
  return texts.join("");
}
