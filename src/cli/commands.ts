import { Command } from "commander";
import { readVersion } from "#version";
import type { CommandContext, MakeCommand } from "./command.ts";

/** Every command with its summary, in the groups and the order in which help shows them. */
const summaries = {
  "Set up:": {
    init: "Set up everything that a push needs to deploy this project",
    send: "Send a signed test push or ping; --dry-run runs nothing",
    doctor: "Find what would keep a push from being deployed, and how to fix it",
    notify: "Send a test message to each target of notifications",
    secret: "Replace the secret while the old one still works",
    upgrade: "Make this server run this version of Hotpush",
    remove: "Stop serving a project on this server",
    completion: "Print the completion script for bash, zsh or fish",
  },
  "Watch and act:": {
    status: "Show what is running, what is waiting, and the service's health",
    history: "List the newest deployments",
    logs: "Print the output of a deployment",
    projects: "List the projects and what is live of each",
    deploy: "Deploy the branch without a push",
    cancel: "Cancel a running or queued deployment",
    pause: "Hold the queue of a project",
    resume: "Let the queue of a project go on",
  },
  "The page:": {
    open: "Let people sign in to the page, and programs use its API",
  },
  "What is served:": {
    rollout: "Replace containers without dropping a request",
    rollback: "Roll back to an earlier version",
    prune: "Remove old images of this project",
  },
  "The service in several processes:": {
    front: "Take deliveries and show the page; listens on the ports",
    run: "Run the deployments; has no port",
  },
} as const;

/** The code of a command is loaded only if it is called. */
const loaders: Readonly<Record<string, () => Promise<MakeCommand>>> = {
  init: async () => (await import("./init.ts")).makeInitCommand,
  send: async () => (await import("./send.ts")).makeSendCommand,
  doctor: async () => (await import("./doctor.ts")).makeDoctorCommand,
  notify: async () => (await import("./notify.ts")).makeNotifyCommand,
  secret: async () => (await import("./secret.ts")).makeSecretCommand,
  upgrade: async () => (await import("./upgrade.ts")).makeUpgradeCommand,
  remove: async () => (await import("./remove.ts")).makeRemoveCommand,
  completion: async () => (await import("./completion.ts")).makeCompletionCommand,
  status: async () => (await import("./status.ts")).makeStatusCommand,
  history: async () => (await import("./history.ts")).makeHistoryCommand,
  logs: async () => (await import("./history.ts")).makeLogsCommand,
  projects: async () => (await import("./history.ts")).makeProjectsCommand,
  deploy: async () => (await import("./deploy.ts")).makeDeployCommand,
  cancel: async () => (await import("./deploy.ts")).makeCancelCommand,
  pause: async () => (await import("./deploy.ts")).makePauseCommand,
  resume: async () => (await import("./deploy.ts")).makeResumeCommand,
  open: async () => (await import("./open.ts")).makeOpenCommand,
  rollout: async () => (await import("./rollout.ts")).makeRolloutCommand,
  rollback: async () => (await import("./deploy.ts")).makeRollbackCommand,
  prune: async () => (await import("./prune.ts")).makePruneCommand,
  front: async () => (await import("./roles.ts")).makeFrontCommand,
  run: async () => (await import("./roles.ts")).makeRunCommand,
};

/** The commands that change nothing: they end if the reader of their output goes away. */
export const onlyPrinting: readonly string[] = [
  "doctor",
  "completion",
  "status",
  "history",
  "logs",
  "projects",
];

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
    .option("--server <url>", "act on another machine, by the address of its page (HOTPUSH_SERVER)")
    .option("--token-file <path>", "the token for that (HOTPUSH_TOKEN_FILE)")
    .description(
      "Push to main, and the new version is live without a dropped request.\nWithout a command, the service starts.",
    );
  for (const [group, entries] of Object.entries(summaries)) {
    for (const [name, summary] of Object.entries(entries)) {
      const make = isWanted(name) ? await loaders[name]?.() : undefined;
      program.addCommand((make?.(context) ?? new Command(name)).summary(summary).helpGroup(group));
    }
  }
  return program;
}
