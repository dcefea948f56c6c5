import { Command } from "commander";
import { readVersion } from "#version";
import { type CommandContext, type MakeCommand, newCommand } from "./command.ts";

/** Its code is loaded only if it is called. */
type CommandRow = readonly [summary: string, load: () => Promise<MakeCommand>];

/** Every command, in the groups and the order in which help shows them. */
const groups: Readonly<Record<string, Readonly<Record<string, CommandRow>>>> = {
  "Set up:": {
    init: [
      "Set up everything that a push needs to deploy this project",
      async () => (await import("./init.ts")).makeInitCommand,
    ],
    send: [
      "Send a signed test push or ping; --dry-run runs nothing",
      async () => (await import("./send.ts")).makeSendCommand,
    ],
    doctor: [
      "Find what would keep a push from being deployed, and how to fix it",
      async () => (await import("./doctor.ts")).makeDoctorCommand,
    ],
    notify: [
      "Send a test message to each target of notifications",
      async () => (await import("./open.ts")).makeNotifyCommand,
    ],
    secret: [
      "Replace the secret while the old one still works",
      async () => (await import("./secret.ts")).makeSecretCommand,
    ],
    upgrade: [
      "Make this server run this version of Hotpush",
      async () => (await import("./upgrade.ts")).makeUpgradeCommand,
    ],
    remove: [
      "Stop serving a project on this server",
      async () => (await import("./remove.ts")).makeRemoveCommand,
    ],
    completion: [
      "Print the completion script for bash, zsh or fish",
      async () => (await import("./completion.ts")).makeCompletionCommand,
    ],
  },
  "Watch and act:": {
    status: [
      "Show what is running, what is waiting, and the service's health",
      async () => (await import("./status.ts")).makeStatusCommand,
    ],
    history: ["List the newest deployments", async () => (await import("./history.ts")).makeHistoryCommand],
    logs: ["Print the output of a deployment", async () => (await import("./history.ts")).makeLogsCommand],
    projects: [
      "List the projects and what is live of each",
      async () => (await import("./history.ts")).makeProjectsCommand,
    ],
    deploy: ["Deploy the branch without a push", async () => (await import("./deploy.ts")).makeDeployCommand],
    cancel: [
      "Cancel a running or queued deployment",
      async () => (await import("./deploy.ts")).makeCancelCommand,
    ],
    pause: ["Pause the deployments of a project", async () => (await import("./deploy.ts")).makePauseCommand],
    resume: [
      "Resume the deployments of a project",
      async () => (await import("./deploy.ts")).makeResumeCommand,
    ],
  },
  "The page:": {
    open: [
      "Let people sign in to the page, and programs use its API",
      async () => (await import("./open.ts")).makeOpenCommand,
    ],
  },
  "Containers:": {
    rollout: [
      "Replace containers without dropping a request",
      async () => (await import("./rollout.ts")).makeRolloutCommand,
    ],
    rollback: [
      "Roll back to an earlier version",
      async () => (await import("./deploy.ts")).makeRollbackCommand,
    ],
    prune: ["Remove old images of this project", async () => (await import("./rollout.ts")).makePruneCommand],
  },
  "The service in several processes:": {
    // main.ts starts these two; here they have their help.
    front: [
      "Take deliveries and show the page; listens on the ports",
      async () => () =>
        newCommand(
          "front",
          "Do all that reads bytes from outside: verify the deliveries for the projects in PROJECTS_PATH, store their pushes in SPOOL_PATH, and serve the page at PAGE_URL, if that is set. It asks hotpush run on the Unix socket FRONT_SOCKET, and needs no repositories, no Docker and no secrets of deploy scripts (docs/projects.md).",
          ["hotpush front   with PROJECTS_PATH and STATE_PATH in its environment"],
        ),
    ],
    run: [
      "Run the deployments; has no port",
      async () => () =>
        newCommand(
          "run",
          "Run the deployments of all projects in PROJECTS_PATH: take the pushes from the spool of hotpush front, and answer the page and the other commands. It listens on no port (docs/projects.md).",
          ["hotpush run   with the same PROJECTS_PATH, and SPOOL_PATH of hotpush front"],
        ),
    ],
  },
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

/** Those that call a service, but not over its page. */
export const onlyThere: readonly string[] = ["doctor", "notify", "secret", "open"];

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
  for (const [group, rows] of Object.entries(groups))
    for (const [name, [summary, load]] of Object.entries(rows)) {
      const command = isWanted(name) ? (await load())(context) : new Command(name);
      program.addCommand(command.summary(summary).helpGroup(group));
    }
  return program;
}
