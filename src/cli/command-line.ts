import { Command } from "commander";
import { type MakeCommand, parse } from "./command.ts";

interface Entry {
  readonly summary: string;
  readonly group: string;
  readonly load: () => Promise<MakeCommand>;
}

const settingUp = "Set up:";
const serving = "What is served:";

/** Every command, in the order in which help shows them. Each is loaded when it is called for. */
const commands: ReadonlyMap<string, Entry> = new Map([
  [
    "init",
    {
      summary: "everything that a push needs to deploy this project",
      group: settingUp,
      load: async () => (await import("./init.ts")).makeInitCommand,
    },
  ],
  [
    "send",
    {
      summary: "a signed push or ping, as a git host sends it; --dry-run runs nothing",
      group: settingUp,
      load: async () => (await import("./send.ts")).makeSendCommand,
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
  const program = new Command("hotpush").description(
    "Push to main, and the new version is live without a dropped request.\nWithout a command, the service starts.",
  );
  const wanted = argv.find((word) => !word.startsWith("-") && word !== "help") ?? "";
  for (const [name, { summary, group, load }] of commands) {
    const command = name === wanted ? (await load())(surroundings) : new Command(name);
    program.addCommand(command.summary(summary).helpGroup(group));
  }
  return (await parse(program, argv)) ?? exitCode;
}
