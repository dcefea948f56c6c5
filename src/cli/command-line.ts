import { type Command, CommanderError } from "commander";
import type { NotRunningError } from "#calls/client";
import { CommandError, ProblemError, refuseOtherSystems } from "#problems";
import { refuse } from "./command.ts";
import { hasTrait, loadProgram } from "./commands.ts";

/** The exit code of a wrong command line, as of every shell's built-in commands. */
const usageExitCode = 2;

/**
 * Runs the command that `argv` names. If it refuses, the reason is printed on standard error.
 *
 * @returns the exit code: that of the command, 0 for help, 1 if it refuses, 2 for a wrong command line
 */
export async function runCommandLine(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  let exitCode = 0;
  const finish = (code: number) => {
    exitCode = code;
  };
  const { words, server } = hasTrait("takeHostToken", argv[0])
    ? { words: [...argv], server: {} }
    : takeServer(argv);
  const wanted = words.find((word) => !word.startsWith("-") && word !== "help");
  surviveReader(wanted === undefined || hasTrait("onlyPrint", wanted));
  const context = { env: { ...env, ...server }, finish };
  if (hasTrait("goBySsh", wanted)) {
    const { runOverSsh, sshServerFor } = await import("./run-elsewhere.ts");
    const overSsh = sshServerFor(context.env);
    if (overSsh !== null) return await runOverSsh(overSsh, words, context.env);
  }
  if (hasTrait("actThere", wanted) && context.env.HOTPUSH_SERVER)
    return refuse(`hotpush ${wanted} acts only on the machine of the service. Run it there.`);
  const program = await loadProgram(context, (name) => words.includes(name));
  for (const command of [program, ...program.commands]) configure(command);
  try {
    if (hasTrait("needServer", wanted) && !words.includes("--help")) refuseOtherSystems();
    await program.parseAsync([...words], { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usageExitCode;
    // The service may be `run` of this server, which has other ways to it.
    if (isNotRunning(error)) return await (await import("./run-elsewhere.ts")).runInServer(error, argv, env);
    if (error instanceof ProblemError) return refuse(error.message, error.problem.evidence);
    if (error instanceof CommandError || isAboutFile(error)) return refuse(error.message);
    throw error;
  }
}

/** By its name: the class comes with the table of calls, which a roll-out does not need. */
function isNotRunning(error: unknown): error is NotRunningError {
  return error instanceof CommandError && error.name === "NotRunningError";
}

/** A file that a person has named may not be there, or not be theirs: the system's own words say so. */
function isAboutFile(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "code" in error && "path" in error;
}

const serverOptions: Readonly<Record<string, string>> = {
  "--server": "HOTPUSH_SERVER",
  "--token-file": "HOTPUSH_TOKEN_FILE",
};

/** Takes `--server` and `--token-file`, which every command has, out of a command line, as variables. */
function takeServer(argv: readonly string[]) {
  const words: string[] = [];
  const server: Record<string, string> = {};
  const rest = argv.values();
  for (const text of rest) {
    const [word = "", value] = text.split(/=(.*)/s, 2);
    const variable = serverOptions[word];
    if (variable === undefined) words.push(text);
    else server[variable] = value ?? rest.next().value ?? "";
  }
  return { words, server };
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

function configure(command: Command): void {
  command
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "hotpush: ")) })
    .showHelpAfterError(`\nSee: ${command.parent ? "hotpush " : ""}${command.name()} --help`);
}
