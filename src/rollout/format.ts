import { formatDuration } from "#config/duration";
import { formatTable } from "#platform/terminal/layout";
import { control } from "#platform/terminal/output";
import { withoutSteering } from "#platform/terminal/printable";
import { requestsText } from "#site-requests";
import type { Report, RolloutEvent, ServiceOutcome } from "./report.ts";

/** Prints each event as lines for a person: the service, the step, its duration, and the result. */
export function reportText(write: (text: string) => void): Report {
  return (event) => {
    // Output of containers and builds must not control the terminal that shows it.
    for (const line of linesOf(event)) write(`${withoutSteering(line, { kept: "\t\n" })}\n`);
  };
}

function linesOf(event: RolloutEvent): readonly string[] {
  switch (event.event) {
    case "started":
      return [`Rolling out ${event.project} at ${event.commit.slice(0, 12)}: ${event.services.join(", ")}`];
    case "step":
      return [columns(event.service ?? "", event.step, formatDuration(event.durationMs), event.detail)];
    case "output":
      return [columns("", event.step, "", event.line)];
    case "note":
      return [columns(event.service ?? "", "note", "", event.text)];
    case "guarding":
      return [columns(event.service, "live", "", `guarded for ${formatDuration(event.guardMs)}`)];
    case "requests":
      return ["", ...requestLines(event)];
    case "finished":
      return ["", ...outcomeTable(event.services), "", `Done in ${formatDuration(event.durationMs)}.`];
    case "failed":
      return ["", `FAILED: ${event.detail}`, ...event.evidence.map((line) => `    ${line}`)];
  }
}

function requestLines({
  sites,
  missingLines,
}: Extract<RolloutEvent, { event: "requests" }>): readonly string[] {
  if (sites !== null)
    return sites.length === 0 ? ["No request came through the proxy."] : sites.map(requestsText);
  const intro = "The requests were not counted, because Caddy does not log them.";
  if (missingLines.length === 0) return [`${intro} Write its new Caddyfile: hotpush upgrade`];
  return [`${intro} Add to each site in the Caddyfile that leads to your services:`, ...missingLines];
}

function columns(service: string, step: string, duration: string, detail: string): string {
  return `  ${service.padEnd(14)} ${step.padEnd(9)} ${duration.padStart(11)}  ${detail}`.trimEnd();
}

/** The closing table: the outcome of each service, and how long it was down. */
export function outcomeTable(outcomes: readonly ServiceOutcome[]): readonly string[] {
  const header = ["Service", "Old → new", "Healthy after", "Drained", "Downtime"];
  return formatTable([header, ...outcomes.map(outcomeRow)]);
}

function outcomeRow(outcome: ServiceOutcome): readonly string[] {
  const { service, healthyAfterMs, drainedMs } = outcome;
  if (outcome.outcome === "unchanged") return [service, "unchanged", "-", "-", "-"];
  const time = (ms: number | null) => (ms === null ? "-" : formatDuration(ms));
  return [service, change(outcome), time(healthyAfterMs), time(drainedMs), downtime(outcome)];
}

function change({ outcome, old, new: fresh }: ServiceOutcome): string {
  if (outcome === "removed") return `${old.join(", ")} → none (no replicas)`;
  if (outcome === "ran") return "ran to its end";
  if (outcome === "skipped") return "not run in a roll back";
  if (old.length === 0) return `${fresh.join(", ")} (first start)`;
  return `${old.join(", ")} → ${fresh.join(", ")}`;
}

function downtime({ outcome, downtimeMs, reason }: ServiceOutcome): string {
  if (downtimeMs === null) return outcome === "rolled" && reason !== null ? reason : "-";
  if (downtimeMs === 0) return reason === null ? "none" : `none (${reason})`;
  return reason === null ? formatDuration(downtimeMs) : `${formatDuration(downtimeMs)} (${reason})`;
}

/** Prints each event as one line of JSON with its time (`at`, RFC 3339). */
export function reportJson(write: (text: string) => void): Report {
  return (event) => write(`${JSON.stringify({ at: new Date().toISOString(), ...event })}\n`);
}

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
