import type { MakeCommand } from "./command.ts";

/** A command as help shows it; its code is loaded only if it is called. */
export interface CommandEntry {
  readonly name: string;
  readonly group: string;
  readonly summary: string;
  /** Whether it changes nothing: then it ends if the reader of its output goes away. */
  readonly onlyPrints?: boolean;
  readonly load: () => Promise<MakeCommand>;
}

/** Every command, in the order in which help shows them. */
export const commands: readonly CommandEntry[] = [
  ...group("Set up:", [
    {
      name: "init",
      summary: "Set up everything that a push needs to deploy this project",
      load: async () => (await import("./init.ts")).makeInitCommand,
    },
    {
      name: "send",
      summary: "Send a signed test push or ping; --dry-run runs nothing",
      load: async () => (await import("./send.ts")).makeSendCommand,
    },
    {
      name: "doctor",
      summary: "Find what would keep a push from being deployed, and how to fix it",
      onlyPrints: true,
      load: async () => (await import("./doctor.ts")).makeDoctorCommand,
    },
    {
      name: "secret",
      summary: "Replace the secret while the old one still works",
      load: async () => (await import("./secret.ts")).makeSecretCommand,
    },
    {
      name: "completion",
      summary: "Print the completion script for bash, zsh or fish",
      onlyPrints: true,
      load: async () => (await import("./completion.ts")).makeCompletionCommand,
    },
  ]),
  ...group("Watch and act:", [
    {
      name: "status",
      summary: "Show what is running, what is waiting, and the service's health",
      onlyPrints: true,
      load: async () => (await import("./status.ts")).makeStatusCommand,
    },
    {
      name: "history",
      summary: "List the newest deployments",
      onlyPrints: true,
      load: async () => (await import("./history.ts")).makeHistoryCommand,
    },
    {
      name: "logs",
      summary: "Print the output of a deployment",
      onlyPrints: true,
      load: async () => (await import("./logs.ts")).makeLogsCommand,
    },
    {
      name: "deploy",
      summary: "Deploy the branch without a push",
      load: async () => (await import("./deploy.ts")).makeDeployCommand,
    },
    {
      name: "cancel",
      summary: "Cancel a running or queued deployment",
      load: async () => (await import("./cancel.ts")).makeCancelCommand,
    },
  ]),
  ...group("What is served:", [
    {
      name: "rollout",
      summary: "Replace containers without dropping a request",
      load: async () => (await import("./rollout.ts")).makeRolloutCommand,
    },
    {
      name: "rollback",
      summary: "Roll back to an earlier version",
      load: async () => (await import("./rollback.ts")).makeRollbackCommand,
    },
    {
      name: "prune",
      summary: "Remove old images of this project",
      load: async () => (await import("./prune.ts")).makePruneCommand,
    },
  ]),
];

function group(title: string, entries: readonly Omit<CommandEntry, "group">[]): readonly CommandEntry[] {
  return entries.map((entry) => ({ ...entry, group: title }));
}
