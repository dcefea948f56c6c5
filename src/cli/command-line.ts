/** A command takes its arguments and the environment, and gives the exit code of the process. */
type Command = (args: readonly string[], env: NodeJS.ProcessEnv) => Promise<number>;

/** Each is loaded when it is called for, so that none costs the others memory. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  rollout: async () => (await import("./rollout.ts")).runRolloutCommand,
  prune: async () => (await import("./prune.ts")).runPruneCommand,
  rollback: async () => (await import("./rollback.ts")).runRollbackCommand,
};

const usage = `Usage: hotpush [command] [options]

Without a command, the service starts: it receives pushes and runs deploy.sh.

  hotpush rollout            new containers replace the old ones of a compose project, no request is dropped
  hotpush rollout app --json only the service app; events as JSON
  hotpush prune --keep 3     old images go, the live version and 3 good ones before it stay
  hotpush rollback           the previous good version is back, as a deployment of its own
  hotpush rollback 7         the version of deployment 7 is

"hotpush <command> --help" says more.
`;

/**
 * Runs the command that `argv` names.
 *
 * @returns the exit code: that of the command, 0 for help, 2 for a wrong command line
 */
export async function runCommandLine(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const [name = "help", ...args] = argv;
  if (["help", "--help", "-h"].includes(name)) {
    process.stdout.write(usage);
    return 0;
  }
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load) return (await load())(args, env);
  process.stderr.write(`hotpush: there is no command "${name}".\n\n${usage}`);
  return 2;
}
