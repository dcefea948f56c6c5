import { type Terminal, wrapText } from "#platform/terminal";
import type { CheckReport } from "./examine.ts";
import type { Fault } from "./finding.ts";

const columns = 80;
const margin = "      ";

type Paint = Terminal["paint"];

/** Counts the faults by severity, and the checks that have none. */
export function countResults(reports: readonly CheckReport[]) {
  const faults = reports.flatMap(({ result }) => result.faults);
  const ofSeverity = (wanted: Fault["severity"]) => faults.filter(({ severity }) => severity === wanted);
  const ofOutcome = (wanted: string) => reports.filter(({ result }) => result.outcome === wanted);
  return {
    problems: ofSeverity("problem").length,
    warnings: ofSeverity("warning").length,
    passed: ofOutcome("ok").length,
    skipped: ofOutcome("skipped").length,
  };
}

/** The report for programs. docs/troubleshooting.md is its contract: every member is always there. */
export function jsonReport(reports: readonly CheckReport[]): string {
  const rows = reports.map(({ check: { id, group, claim }, project, result }) => {
    return { project, id, group, subject: claim, ...result };
  });
  return JSON.stringify({ ...countResults(reports), checks: rows });
}

/** The report for a person: a line per check, and below it what is wrong and how to fix it. */
export function textReport(reports: readonly CheckReport[], paint: Paint): string {
  const texts = [...Map.groupBy(reports, ({ project }) => project)].flatMap(([project, own]) => [
    ...(project === null ? [] : [paint("bold", `Project ${project}`)]),
    ...[...Map.groupBy(own, ({ check }) => check.group)].map(([group, mine]) =>
      [paint("bold", group), ...mine.flatMap((one) => checkLines(one, paint))].join("\n"),
    ),
  ]);
  const { problems, warnings, passed, skipped } = countResults(reports);
  const end = `Problems: ${problems}, warnings: ${warnings}; passed: ${passed}, skipped: ${skipped}`;
  return `${texts.join("\n\n")}\n\n${paint("bold", end)}\n`;
}

function checkLines({ check: { id }, result: { outcome, fact, faults } }: CheckReport, paint: Paint) {
  if (outcome === "faulty") {
    const isProblem = faults.some(({ severity }) => severity === "problem");
    const head = `  ${isProblem ? paint("red", "✗") : paint("yellow", "!")} ${id}`;
    return [head, ...faults.flatMap((fault) => faultLines(fault, paint))];
  }
  const line = (mark: string, what: string) => `  ${mark} ${id.padEnd(19)} ${what}${oneLine(fact ?? "")}`;
  const text = outcome === "ok" ? line(paint("green", "✓"), "") : paint("dim", line("-", "skipped: "));
  return wrapText(text, columns, " ".repeat(24));
}

function faultLines({ text, command, change }: Fault, paint: Paint): readonly string[] {
  const lines = (shown: string) => wrapText(margin + shown, columns);
  const fix = [
    // A command stays one line, so that it can be copied.
    ...(command === null ? [] : [`${margin}Run:`, `${margin}  ${command}`]),
    ...(change === null ? [] : [`${margin}Change:`, ...lines(`  ${oneLine(change)}`)]),
  ];
  return [...lines(oneLine(text)), ...fix.map((line) => paint("bold", line))];
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
