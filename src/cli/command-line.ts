import { Command } from "commander";
import { readVersion } from "../version.ts";
import { type MakeCommand, parse } from "./command.ts";

interface Entry {
  readonly summary: string;
  readonly group: string;
  readonly load: () => Promise<MakeCommand>;
}

const settingUp = "Set up:";
const watching = "Watch and act:";
const serving = "What is served:";

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
]);

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
  const program = new Command("hotpush")
    .version(readVersion(), "-V, --version", "print the version")
    .description(
      "Push to main, and the new version is live without a dropped request.\nWithout a command, the service starts.",
    );
  const wanted = argv.find((word) => !word.startsWith("-") && word !== "help") ?? "";
  for (const [name, { summary, group, load }] of commands) {
    const command = name === wanted ? (await load())(surroundings) : new Command(name);
    program.addCommand(command.summary(summary).helpGroup(group));
  }
  return (await parse(program, argv)) ?? exitCode;
}
