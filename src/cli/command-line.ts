import { Command, CommanderError } from "commander";
import type { NotRunningError } from "#calls/client";
import { CommandError, ProblemError, refuseOtherSystems } from "#problems";
import { readVersion } from "#version";
import { type CommandContext, type MakeCommand, refuse } from "./command.ts";

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
  // Another one must not be taken in its place.
  if (server.HOTPUSH_SERVER === "") {
    refuse("--server has no value. Name the server, such as ssh://root@203.0.113.5.");
    return usageExitCode;
  }
  const context = { env: { ...env, ...server }, finish };
  if (hasTrait("goBySsh", wanted) && !words.includes("--help") && words[0] !== "help") {
    const { runOverSsh, sshServerFor } = await import("./run-elsewhere.ts");
    const overSsh = sshServerFor(context.env);
    if (overSsh !== null) return await runOverSsh(overSsh, words, context.env);
  }
  const isHere = wanted !== undefined && !hasTrait("goBySsh", wanted) && !hasTrait("askPage", wanted);
  if ((isHere && server.HOTPUSH_SERVER) || (hasTrait("actThere", wanted) && context.env.HOTPUSH_SERVER))
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
function takeServer(argv: readonly string[]): { words: string[]; server: Record<string, string> } {
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

/** The makers of a file's commands, by their names. */
type CommandFile = { readonly commands: Readonly<Record<string, MakeCommand>> };

/** Its code is loaded only if it is called. null: main.ts starts it, and here it only has its help. */
type CommandRow = readonly [summary: string, load: (() => Promise<CommandFile>) | null];

/** Every command, in the groups and the order in which help shows them. */
const groups = {
  "Set up:": {
    up: ["Set up a bare server and a project from your own machine", () => import("./up.ts")],
    init: ["Set up everything that a push needs to deploy this project", () => import("./init.ts")],
    connect: ["Make the webhook and the deploy key at your git host", () => import("./connect.ts")],
    clone: ["Clone a repository with a deploy key of its own", () => import("./up.ts")],
    send: ["Send a signed test push; --dry-run runs nothing", () => import("./send.ts")],
    doctor: [
      "Find what would keep a push from being deployed, and how to fix it",
      () => import("./doctor.ts"),
    ],
    notify: ["Send a test message to each target of notifications", () => import("./open.ts")],
    secret: ["Replace the secret while the old one still works", () => import("./secret.ts")],
    upgrade: ["Make this server run this version of Hotpush", () => import("./upgrade.ts")],
    remove: ["Stop serving a project on this server", () => import("./remove.ts")],
    completion: ["Print the completion script for bash, zsh or fish", () => import("./completion.ts")],
  },
  "Watch and act:": {
    status: ["Show what is running, what is waiting, and the service's health", () => import("./status.ts")],
    history: ["List the newest deployments", () => import("./history.ts")],
    logs: ["Print the output of a deployment", () => import("./history.ts")],
    receipt: ["Print the signed receipt of a deployment", () => import("./receipt.ts")],
    verify: ["Verify a receipt", () => import("./receipt.ts")],
    deploy: ["Deploy the branch without a push", () => import("./deploy.ts")],
    cancel: ["Cancel a running or queued deployment", () => import("./deploy.ts")],
    pause: ["Pause the deployments of a project", () => import("./deploy.ts")],
    resume: ["Resume the deployments of a project", () => import("./deploy.ts")],
  },
  "The page:": {
    open: ["Let people sign in to the page, and programs use its API", () => import("./open.ts")],
  },
  "Containers:": {
    rollout: ["Replace containers without dropping a request", () => import("./rollout.ts")],
    rollback: ["Roll back to an earlier version", () => import("./deploy.ts")],
    prune: ["Remove old images of this project", () => import("./rollout.ts")],
  },
  "The service in several processes:": {
    front: ["Take deliveries and show the page; listens on the ports", null],
    run: ["Run the deployments; has no port", null],
  },
} satisfies Readonly<Record<string, Readonly<Record<string, CommandRow>>>>;

type Groups = typeof groups;
type CommandName = { readonly [Group in keyof Groups]: keyof Groups[Group] }[keyof Groups];

/** Where a command runs and what its surroundings may do to it, by its name. */
const traits = {
  /** They change nothing: they end if the reader of their output goes away. */
  onlyPrint: ["doctor", "completion", "status", "history", "logs", "receipt", "verify"],
  /** They set a server up, or replace its containers. */
  needServer: ["init", "upgrade", "remove", "rollout", "prune"],
  /** They call a service, but not over its page. */
  actThere: ["connect", "doctor", "notify", "secret", "open"],
  /** They run on the server themselves if HOTPUSH_SERVER is an address of ssh. */
  goBySsh: [
    "status",
    "history",
    "logs",
    "receipt",
    "deploy",
    "cancel",
    "pause",
    "resume",
    "rollback",
    "open",
    "doctor",
    "notify",
  ],
  /** They ask the page of HOTPUSH_SERVER, but do not run on the server themselves. */
  askPage: ["verify"],
  /** Their token is one of a git host, which is never sent to a page, nor one of a page to a git host. */
  takeHostToken: ["connect", "clone", "up"],
} satisfies Readonly<Record<string, readonly CommandName[]>>;

/** Whether the command of this name has a trait. */
function hasTrait(trait: keyof typeof traits, name = ""): boolean {
  return (traits[trait] as readonly string[]).includes(name);
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
    .option("--server <url>", "act on another machine, by the address of its page (HOTPUSH_SERVER)")
    .option("--token-file <path>", "the token for that (HOTPUSH_TOKEN_FILE)")
    .description(
      "Push to main, and the new version is live without a dropped request.\nWithout a command, the service starts.",
    );
  for (const [group, commands] of Object.entries(groups))
    for (const [name, [summary, load]] of Object.entries<CommandRow>(commands)) {
      const made = isWanted(name) ? (await load?.())?.commands[name]?.(context) : null;
      const bare = new Command(name).description(load === null ? `${summary}. See docs/projects.md.` : "");
      program.addCommand((made ?? bare).summary(summary).helpGroup(group));
    }
  return program;
}
