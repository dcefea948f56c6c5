import type { MakeCommand } from "./command.ts";

/** A command as help shows it; it is loaded when it is called for. */
export interface Entry {
  readonly name: string;
  readonly group: string;
  readonly summary: string;
  /** Whether it changes anything: then it is done to its end, whoever reads what it says. */
  readonly changesThings: boolean;
  readonly load: () => Promise<MakeCommand>;
}

const settingUp = "Set up:";
const watching = "Watch and act:";
const serving = "What is served:";

/** Every command, in the order in which help shows them. */
export const commands: readonly Entry[] = [
  {
    name: "init",
    group: settingUp,
    summary: "everything that a push needs to deploy this project",
    changesThings: true,
    load: async () => (await import("./init.ts")).makeInitCommand,
  },
  {
    name: "send",
    group: settingUp,
    summary: "a signed push or ping, as a git host sends it; --dry-run runs nothing",
    changesThings: true,
    load: async () => (await import("./send.ts")).makeSendCommand,
  },
  {
    name: "doctor",
    group: settingUp,
    summary: "what would keep a push from being deployed, and what mends it",
    changesThings: false,
    load: async () => (await import("./doctor.ts")).makeDoctorCommand,
  },
  {
    name: "secret",
    group: settingUp,
    summary: "a new secret, while the old one still works",
    changesThings: true,
    load: async () => (await import("./secret.ts")).makeSecretCommand,
  },
  {
    name: "completion",
    group: settingUp,
    summary: "bash, zsh or fish complete hotpush",
    changesThings: false,
    load: async () => (await import("./completion.ts")).makeCompletionCommand,
  },
  {
    name: "status",
    group: watching,
    summary: "what runs, what waits, how the service is",
    changesThings: false,
    load: async () => (await import("./status.ts")).makeStatusCommand,
  },
  {
    name: "history",
    group: watching,
    summary: "the newest deployments",
    changesThings: false,
    load: async () => (await import("./history.ts")).makeHistoryCommand,
  },
  {
    name: "logs",
    group: watching,
    summary: "what a deployment prints",
    changesThings: false,
    load: async () => (await import("./logs.ts")).makeLogsCommand,
  },
  {
    name: "deploy",
    group: watching,
    summary: "what the branch is now, without a push",
    changesThings: true,
    load: async () => (await import("./deploy.ts")).makeDeployCommand,
  },
  {
    name: "cancel",
    group: watching,
    summary: "what runs or waits ends",
    changesThings: true,
    load: async () => (await import("./cancel.ts")).makeCancelCommand,
  },
  {
    name: "rollout",
    group: serving,
    summary: "new containers replace the old ones, no request is dropped",
    changesThings: true,
    load: async () => (await import("./rollout.ts")).makeRolloutCommand,
  },
  {
    name: "rollback",
    group: serving,
    summary: "an earlier good version is back",
    changesThings: true,
    load: async () => (await import("./rollback.ts")).makeRollbackCommand,
  },
  {
    name: "prune",
    group: serving,
    summary: "old images of this project go",
    changesThings: true,
    load: async () => (await import("./prune.ts")).makePruneCommand,
  },
];
