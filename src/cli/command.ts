import { Command, InvalidArgumentError, Option } from "commander";
import { isProjectName } from "#config/server";
import { wholeNumber } from "#config/values";
import { canAsk, confirm, wrapFor } from "#platform/terminal";

/** What a command gets from the process, and how it leaves its exit code. */
export interface CommandContext {
  readonly env: NodeJS.ProcessEnv;
  /** 0 if the command did what was requested, 1 if not; 2 is for a wrong command line. */
  readonly finish: (exitCode: number) => void;
}

export type MakeCommand = (context: CommandContext) => Command;

/**
 * A command of `hotpush` with its description, and examples below its help.
 *
 * @param examples a line each: the command line, two spaces or more, what it does
 */
export function newCommand(name: string, description: string, examples: readonly string[]): Command {
  const text = `\nExamples:\n${examples.map((line) => `  ${line}\n`).join("")}`;
  return new Command(name).description(description).addHelpText("after", text);
}

/** Makes the parser of an option or argument: if `read` gives null, the command line is refused with `fault`. */
export function parser<Value>(read: (text: string) => Value | null, fault: string): (text: string) => Value {
  return (text) => {
    const value = read(text);
    if (value !== null) return value;
    throw new InvalidArgumentError(fault);
  };
}

/** Makes the parser of a whole number of at most 9 digits from `least` to `most`. */
export function numberParser(least: number, most: number, fault: string): (text: string) => number {
  return parser((text) => wholeNumber(text, least, most), fault);
}

/** The parser of an argument that is the number of a deployment. */
export const deploymentId = numberParser(1, Number.MAX_SAFE_INTEGER, "Not the number of a deployment.");

/** The option that names a project. */
export function projectOption(text = "the project; default: that of the working directory"): Option {
  const read = parser((name) => (isProjectName(name) ? name : null), "Not 1 to 39 of a-z, 0-9 and hyphens.");
  return new Option("--project <name>", text).argParser(read);
}

/**
 * Does `work` with a signal that Ctrl-C or SIGTERM aborts, in place of ending the process. A second Ctrl-C ends it; SIGTERM comes twice
 * from who signals a group, such as systemd and timeout.
 */
export async function untilLeft<Result>(work: (left: AbortSignal) => Promise<Result>): Promise<Result> {
  const left = new AbortController();
  const leave = () => left.abort();
  process.once("SIGINT", leave).on("SIGTERM", leave);
  // In the container of `run`, no signal of the caller arrives (run-elsewhere.ts), but the end of its input does.
  const { stdin } = process;
  const isWithin = process.env.HOTPUSH_WITHIN !== undefined && !stdin.isTTY;
  if (isWithin) stdin.once("end", leave).resume();
  try {
    return await work(left.signal);
  } finally {
    process.removeListener("SIGINT", leave).removeListener("SIGTERM", leave);
    if (isWithin) stdin.destroy();
  }
}

/** Prints lines on standard output. */
export function print(...lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(""));
}

/** Prints a text on standard output, in lines that fit a terminal. `indent` is what each but the first begins with. */
export function say(text: string, indent = ""): void {
  print(wrapFor(process.stdout, text, indent));
}

/** Prints on standard error why a command refuses, with lines of evidence below, and gives the exit code for it. */
export function refuse(text: string, evidence: readonly string[] = []): number {
  const prefix = "hotpush: ";
  const lines = [
    wrapFor(process.stderr, prefix + text, " ".repeat(prefix.length)),
    ...evidence.map((line) => `    ${line}`),
  ];
  process.stderr.write(lines.map((line) => `${line}\n`).join(""));
  return 1;
}

/** Asks whether a command may do `what` ("change x as shown"). Without a terminal nobody can be asked, and it may not. */
export async function isAgreed(what: string): Promise<boolean> {
  if (!canAsk()) {
    refuse(`This would ${what}. Nothing was changed; to agree: the same command with --yes`);
    return false;
  }
  if (await confirm(`${what[0]?.toUpperCase()}${what.slice(1)}?`)) return true;
  refuse("Nothing was changed.");
  return false;
}
