import { Command, CommanderError } from "commander";
import { wrapFor } from "../platform/terminal/wrap.ts";

/** What a command works in: the environment it was called with, and where it leaves its exit code. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  /** 0 where what was asked for is so, 1 where not; 2 is for a wrong command line. */
  readonly finish: (exitCode: number) => void;
}

export type MakeCommand = (surroundings: Surroundings) => Command;

/** The exit code of a wrong command line, as of every shell's built-in commands. */
const usageExitCode = 2;

/**
 * A command of `hotpush` with its summary, and examples below its help.
 *
 * @param examples a line each: the command line, two spaces or more, what it does
 */
export function newCommand(name: string, summary: string, examples: readonly string[]): Command {
  const text = `\nExamples:\n${examples.map((line) => `  ${line}\n`).join("")}`;
  return new Command(name).description(summary).addHelpText("after", text);
}

/** Collects the values of an option that can be repeated. */
export function another(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Says on standard error why a command refuses, and gives the exit code for it. */
export function refuse(text: string): number {
  process.stderr.write(`${wrapFor(process.stderr, `hotpush: ${text}`)}\n`);
  return 1;
}

/**
 * Parses `argv` with `program` and runs what it names.
 *
 * @returns the exit code where the command line ended it: 0 after help, 2 where it was wrong; null where a command ran
 */
export async function parse(program: Command, argv: readonly string[]): Promise<number | null> {
  for (const command of [program, ...program.commands, ...program.commands.flatMap((one) => one.commands)]) {
    command
      .exitOverride()
      .configureOutput({ outputError })
      .showHelpAfterError(`\nSee: ${pathOf(command)} --help`);
  }
  try {
    await program.parseAsync([...argv], { from: "user" });
    return null;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : usageExitCode;
  }
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

function outputError(text: string, write: (text: string) => void): void {
  write(text.replace(/^error: /, "hotpush: "));
}
