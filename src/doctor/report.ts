import { type Terminal, wrapText } from "#platform/terminal";
import type { Fault, ProbeResult } from "./context.ts";
import type { CheckReport } from "./examine.ts";

const columns = 80;
const margin = "      ";

type Paint = Terminal["paint"];

/** Counts the faults by severity, and the checks that have none. */
export function countResults(reports: readonly CheckReport[]) {
  const faults = reports.flatMap(({ result }) => (result.outcome === "faulty" ? result.faults : []));
  const bySeverity = (wanted: Fault["severity"]) => faults.filter(({ severity }) => severity === wanted);
  const withOutcome = (wanted: ProbeResult["outcome"]) =>
    reports.filter(({ result }) => result.outcome === wanted);
  return {
    problems: bySeverity("problem").length,
    warnings: bySeverity("warning").length,
    passed: withOutcome("ok").length,
    skipped: withOutcome("skipped").length,
  };
}

/** The report for programs. docs/troubleshooting.md is its contract: every member is always there. */
export function jsonReport(reports: readonly CheckReport[]): string {
  return JSON.stringify({ ...countResults(reports), checks: reports.map(checkJson) });
}

function checkJson({ check: { id, group, claim }, project, result }: CheckReport) {
  return {
    project,
    id,
    group,
    subject: claim,
    outcome: result.outcome,
    fact: result.outcome === "ok" ? result.fact : result.outcome === "skipped" ? result.reason : null,
    faults: (result.outcome === "faulty" ? result.faults : []).map(({ severity, text, command, change }) => ({
      severity,
      text,
      command: command ?? null,
      change: change ?? null,
    })),
  };
}

/** The report for a person: a line per check, and below it what is wrong and how to fix it. */
export function textReport(reports: readonly CheckReport[], paint: Paint): string {
  const byProject = Map.groupBy(reports, ({ project }) => project);
  const texts = Array.from(byProject, ([project, own]) => [
    ...(project === null ? [] : [paint("bold", `Project ${project}`)]),
    ...sectionTexts(own, paint),
  ]).flat();
  const end = lastLine(countResults(reports));
  return `${texts.join("\n\n")}\n\n${paint("bold", end)}\n`;
}

function sectionTexts(reports: readonly CheckReport[], paint: Paint): readonly string[] {
  const sections = Map.groupBy(reports, ({ check }) => check.group);
  return Array.from(sections, ([group, mine]) =>
    [paint("bold", group), ...mine.flatMap((one) => checkLines(one, paint))].join("\n"),
  );
}

function checkLines({ check, result }: CheckReport, paint: Paint): readonly string[] {
  const name = check.id.padEnd(19);
  const hanging = (mark: string, text: string) => {
    const [first = "", ...rest] = wrapText(oneLine(text), columns - 24);
    return [`  ${mark} ${name} ${first}`, ...rest.map((line) => `${" ".repeat(24)}${line}`)];
  };
  if (result.outcome === "ok") return hanging(paint("green", "✓"), result.fact);
  if (result.outcome === "skipped") {
    return hanging(paint("dim", "-"), `skipped: ${result.reason}`).map((line) => paint("dim", line));
  }
  const isProblem = result.faults.some(({ severity }) => severity === "problem");
  const head = `  ${isProblem ? paint("red", "✗") : paint("yellow", "!")} ${check.id}`;
  return [head, ...result.faults.flatMap((fault) => faultLines(fault, paint))];
}

function faultLines({ text, command, change }: Fault, paint: Paint): readonly string[] {
  const width = columns - margin.length;
  const lines = wrapText(oneLine(text), width).map((line) => `${margin}${line}`);
  const indented = (heading: string, fix: readonly string[]) => [heading, ...fix.map((line) => `  ${line}`)];
  // A command stays one line, so that it can be copied.
  const run = command === undefined ? [] : indented("Run:", [command]);
  const write = change === undefined ? [] : indented("Change:", wrapText(oneLine(change), width - 2));
  return [...lines, ...[...run, ...write].map((line) => `${margin}${paint("bold", line)}`)];
}

function lastLine({ problems, warnings, passed, skipped }: ReturnType<typeof countResults>): string {
  if (problems + warnings > 0)
    return [plural(problems, "problem"), plural(warnings, "warning")].filter(Boolean).join(", ");
  const all = passed === 1 ? "1 check passed" : `All ${passed} checks passed`;
  return skipped === 0 ? all : `${all}, ${skipped} skipped`;
}

function plural(number: number, word: string): string {
  return number === 0 ? "" : `${number} ${word}${number === 1 ? "" : "s"}`;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
