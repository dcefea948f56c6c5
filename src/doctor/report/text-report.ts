import { wrapText } from "../../platform/terminal/wrap.ts";
import { type Fault, groups } from "../check.ts";
import { type Counts, count, type Examined } from "../examine.ts";

const columns = 80;
const margin = "      ";

type Paint = (color: keyof typeof colors, text: string) => string;

/** By the numbers of ECMA-48. */
const colors = { red: 31, green: 32, yellow: 33, dim: 2, bold: 1 } as const;

/** For a person: a line for each check, and below it what is wrong and what mends it. */
export function textReport(examined: readonly Examined[], isColored: boolean): string {
  const paint: Paint = (color, text) => (isColored ? `\x1b[${colors[color]}m${text}\x1b[0m` : text);
  const sections = groups.flatMap((group) => {
    const mine = examined.filter(({ check }) => check.group === group);
    return mine.length === 0 ? [] : [[paint("bold", group), ...mine.flatMap((one) => told(one, paint))]];
  });
  const end = lastLine(count(examined));
  return `${sections.map((lines) => lines.join("\n")).join("\n\n")}\n\n${paint("bold", end)}\n`;
}

function told({ check, result }: Examined, paint: Paint): readonly string[] {
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
  const run =
    command === undefined ? [] : ["Run:", ...wrapCommand(command, width - 2).map((line) => `  ${line}`)];
  const write =
    change === undefined
      ? []
      : ["Change:", ...wrapText(oneLine(change), width - 2).map((line) => `  ${line}`)];
  return [...lines, ...[...run, ...write].map((line) => `${margin}${paint("bold", line)}`)];
}

function lastLine({ problems, warnings, passed, skipped }: Counts): string {
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

/**
 * A command in lines of at most `width` columns that can be pasted as they are: a shell goes on after `&&`, `||` and `|`, and
 * after a backslash between words. Quoted text is never broken. If the command takes several lines, each `&&` ends one.
 */
export function wrapCommand(command: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of shellWords(command)) {
    const last = lines.at(-1);
    const margin = " \\".length;
    const isOver = command.length > width && last?.endsWith("&&");
    if (last !== undefined && !isOver && last.length + 1 + word.length + margin <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else lines.push(lines.length === 0 ? word : `  ${word}`);
  }
  return lines.map((line, index) =>
    index === lines.length - 1 || /(?:&&|\|)$/.test(line) ? line : `${line} \\`,
  );
}

function shellWords(command: string): readonly string[] {
  return command.match(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/g) ?? [];
}
