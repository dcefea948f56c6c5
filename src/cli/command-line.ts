import { Command } from "commander";
import { type MakeCommand, parse, type Surroundings } from "./command.ts";

interface Entry {
  readonly summary: string;
  readonly group: string;
  readonly load: () => Promise<MakeCommand>;
}

const settingUp = "Set up:";
const watching = "Watch and act:";
const serving = "What is served:";
const settingUp = "Setting up:";

/** Every command, in the order in which help shows them. Each is loaded when it is called for. */
const commands: ReadonlyMap<string, Entry> = new Map([
  [
    "send",
    {
      summary: "a signed push or ping, as a git host sends it; --dry-run runs nothing",
      group: settingUp,
      load: async () => (await import("./send.ts")).makeSendCommand,
    },
  ],
  [
    "status",
    {
      summary: "what runs, what waits, how the service is",
      group: watching,
      load: async () => (await import("./status.ts")).makeStatusCommand,
    },
  ],
  [
    "history",
    {
      summary: "the newest deployments",
      group: watching,
      load: async () => (await import("./history.ts")).makeHistoryCommand,
    },
  ],
  [
    "logs",
    {
      summary: "what a deployment prints",
      group: watching,
      load: async () => (await import("./logs.ts")).makeLogsCommand,
    },
  ],
  [
    "deploy",
    {
      summary: "what the branch is now, without a push",
      group: watching,
      load: async () => (await import("./deploy.ts")).makeDeployCommand,
    },
  ],
  [
    "cancel",
    {
      summary: "what runs or waits ends",
      group: watching,
      load: async () => (await import("./cancel.ts")).makeCancelCommand,
    },
  ],
  [
    "rollout",
    {
      summary: "new containers replace the old ones, no request is dropped",
      group: serving,
      load: async () => (await import("./rollout.ts")).makeRolloutCommand,
    },
  ],
  [
    "rollback",
    {
      summary: "an earlier good version is back",
      group: serving,
      load: async () => (await import("./rollback.ts")).makeRollbackCommand,
    },
  ],
  [
    "prune",
    {
      summary: "old images of this project go",
      group: serving,
      load: async () => (await import("./prune.ts")).makePruneCommand,
    },
  ],
  [
    "secret",
    {
      summary: "a new secret, while the old one still works",
      group: settingUp,
      load: async () => (await import("./secret.ts")).makeSecretCommand,
    },
  ],
  [
    "completion",
    {
      summary: "bash, zsh or fish complete hotpush",
      group: settingUp,
      load: async () => (await import("./completion.ts")).makeCompletionCommand,
    },
  ],
]);

/**
 * Runs the command that `argv` names.
 *
 * @returns the exit code: that of the command, 0 for help, 2 for a wrong command line
 */
export async function runCommandLine(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  let exitCode = 0;
  // Whoever reads our output may go away, as head does.
  process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => process.exit(code === "EPIPE" ? 0 : 1));
  const surroundings = {
    env,
    finish: (code: number) => {
      exitCode = code;
    },
  };
  const wanted = argv.find((word) => !word.startsWith("-") && word !== "help") ?? "";
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
  const program = new Command("hotpush").description(
    "Push to main, and the new version is live without a dropped request.\nWithout a command, the service starts.",
  );
  for (const [name, { summary, group, load }] of commands) {
    const command = isWanted(name) ? (await load())(surroundings) : new Command(name);
    program.addCommand(command.summary(summary).helpGroup(group));
  }
  return program;
}
