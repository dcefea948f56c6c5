import { Command, CommanderError } from "commander";
import { readVersion } from "../version.ts";
import type { CommandContext } from "./command.ts";
import { commands } from "./commands.ts";

/** The exit code of a wrong command line, as of every shell's built-in commands. */
const usageExitCode = 2;

/**
 * Runs the command that `argv` names.
 *
 * @returns the exit code: that of the command, 0 for help, 2 for a wrong command line
 */
export async function runCommandLine(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  let exitCode = 0;
  const finish = (code: number) => {
    exitCode = code;
  };
  const wanted = argv.find((word) => !word.startsWith("-") && word !== "help") ?? "";
  surviveReader(!commands.some(({ name, onlyPrints }) => name === wanted && !onlyPrints));
  // The completion script is made from all commands.
  const program = await loadProgram({ env, finish }, (name) => name === wanted || wanted === "completion");
  return (await parse(program, argv)) ?? exitCode;
}

/**
 * Builds the program. Commands that are not wanted are in it by name and summary only.
 *
 * @param isWanted all commands if it is omitted
 */
export async function loadProgram(
  context: CommandContext,
  isWanted: (name: string) => boolean = () => true,
): Promise<Command> {
  const program = new Command("hotpush")
    .version(readVersion(), "-V, --version", "print the version")
    .description(
      "Push to main, and the new version is live without a dropped request.\nWithout a command, the service starts.",
    );
  for (const { name, summary, group, load } of commands) {
    const command = isWanted(name) ? (await load())(context) : new Command(name);
    program.addCommand(command.summary(summary).helpGroup(group));
  }
  return program;
}

/**
 * The reader of our output may go away, as head does. A command that only prints then ends. One that changes something
 * must not stop in the middle, so the rest of its output is dropped.
 */
function surviveReader(onlyPrints: boolean): void {
  if (onlyPrints) {
    process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => process.exit(code === "EPIPE" ? 0 : 1));
    return;
  }
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}

/** @returns the exit code if no command ran: 0 after help, 2 for a wrong command line; null if one did */
async function parse(program: Command, argv: readonly string[]): Promise<number | null> {
  for (const command of [program, ...program.commands, ...program.commands.flatMap((one) => one.commands)]) {
    command
      .exitOverride()
      .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "hotpush: ")) })
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
