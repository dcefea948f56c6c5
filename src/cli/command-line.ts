import { Command } from "commander";
import { readVersion } from "../version.ts";
import { parse, type Surroundings } from "./command.ts";
import { commands } from "./commands.ts";

/**
 * Runs the command that `argv` names.
 *
 * @returns the exit code: that of the command, 0 for help, 2 for a wrong command line
 */
export async function runCommandLine(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  let exitCode = 0;
  const surroundings = {
    env,
    finish: (code: number) => {
      exitCode = code;
    },
  };
  const wanted = argv.find((word) => !word.startsWith("-") && word !== "help") ?? "";
  outliveReader(commands.some(({ name, changesThings }) => name === wanted && changesThings));
  const program = await loadProgram(surroundings, (name) => name === wanted);
  return (await parse(program, argv)) ?? exitCode;
}

/**
 * Builds the program; the commands that are not wanted are in it by their names alone.
 *
 * @param isWanted all of them where it is not given
 */
export async function loadProgram(
  surroundings: Surroundings,
  isWanted: (name: string) => boolean = () => true,
): Promise<Command> {
  const program = new Command("hotpush")
    .version(readVersion(), "-V, --version", "print the version")
    .description(
      "Push to main, and the new version is live without a dropped request.\nWithout a command, the service starts.",
    );
  for (const { name, summary, group, load } of commands) {
    const command = isWanted(name) ? (await load())(surroundings) : new Command(name);
    program.addCommand(command.summary(summary).helpGroup(group));
  }
  return program;
}

/**
 * Whoever reads our output may go away, as head does. A command that only tells has nothing more to do then; one that
 * changes things must not be cut in the middle, so what it says from there on is dropped.
 */
function outliveReader(changesThings: boolean): void {
  if (!changesThings) {
    process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => process.exit(code === "EPIPE" ? 0 : 1));
    return;
  }
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}
