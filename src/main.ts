import process from "node:process";
import type { MachineSettings } from "./config/machine.ts";
import type { ProjectSettings } from "./config/project.ts";
import type { Log } from "./log.ts";
import { cleanOutput } from "./platform/terminal/output.ts";
import { exitCodeOf, ProblemError } from "./problems.ts";
import type { RunningService } from "./run.ts";

/** How much longer than the grace of a running deployment stopping may take. */
const stopMarginMs = 4_000;

/** The service as a whole, one of its two halves, or the page. */
type Role = "all" | "receive" | "run" | "page";

const roles: ReadonlyMap<string | undefined, Role> = new Map([
  [undefined, "all"],
  ["receive", "receive"],
  ["run", "run"],
  ["page", "page"],
]);

/** Everything that a role needs is loaded at the same time: the start is faster than if each part loads the next. */
const loadRole: Readonly<Record<Role, () => readonly Promise<unknown>[]>> = {
  all: () => [import("./run.ts"), import("./own-receiver.ts")],
  receive: () => [import("./receive.ts")],
  run: () => [import("./run.ts"), import("./take-from-inbox.ts")],
  page: () => [import("./page/page.ts")],
};

cleanOutput(process.stdout, process.stderr);
try {
  const command = process.argv.slice(2);
  const role = command.length > 1 ? undefined : roles.get(command[0]);
  if (role === undefined) {
    const { runCommandLine } = await import("./cli/command-line.ts");
    process.exitCode = await runCommandLine(command, process.env);
  } else await main(role);
} catch (error) {
  fail(error);
}

async function main(role: Role): Promise<void> {
  refuseLenientParser();
  // Loaded here because a command needs none of it and must answer at once.
  const [{ withDotenv }, { loadConfig }, { openLog }] = await Promise.all([
    import("./platform/env-file.ts"),
    import("./config.ts"),
    import("./log.ts"),
    ...loadRole[role](),
  ]);
  const env = withDotenv(process.env, process.cwd());
  // The page has no project and no webhook.
  const { machine, project, warnings } =
    role === "page" ? { machine: null, project: null, warnings: [] } : loadConfig(env);
  forgetSecrets();
  const log = openLog(machine?.logLevel ?? "info");
  for (const warning of warnings) log.warn({ event: "config.unwise" }, warning);
  process.on("uncaughtException", (error) => die(log, error));
  process.on("unhandledRejection", (error) => die(log, error));
  // A closed terminal must not stop the service, and a lost reader must not kill it. SIGUSR1 would start Node's
  // debugger, which lets any user of the machine run code in the service.
  for (const signal of ["SIGHUP", "SIGPIPE", "SIGUSR1"] as const) process.on(signal, () => {});
  const service =
    machine === null
      ? await (await import("./page/page.ts")).startPage(env, log)
      : await start(role, { machine, project, env, log });
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => stop(signal, service, log, machine?.shutdownGraceMs ?? 0));
  }
  if (service.address === null) {
    log.info({ event: "service.started" }, "Hotpush runs deployments");
    return;
  }
  const { address, port } = service.address;
  log.info({ event: "service.started", address, port }, `Hotpush listens on ${address}:${port}`);
}

interface Start {
  readonly machine: MachineSettings;
  readonly project: ProjectSettings | null;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
}

async function start(role: Role, { machine, project, env, log }: Start): Promise<RunningService> {
  const { projectsPath } = machine;
  if (role !== "all" && projectsPath === null) {
    const detail = `PROJECTS_PATH is not set: hotpush ${role} serves the projects of a directory. Without it, run: hotpush`;
    throw new ProblemError({ code: "configuration_invalid", detail });
  }
  const secretsPath = role === "receive" ? null : machine.secretsPath;
  const files =
    project === null
      ? (await import("./config/project-files.ts")).readProjectFiles({
          ...{ projectsPath: projectsPath ?? "", secretsPath, log },
        })
      : (await import("./config/project-files.ts")).onlyProject(project);
  if (role === "receive") {
    const { startReceive } = await import("./receive.ts");
    return await startReceive(machine, files, log);
  }
  const { startRun } = await import("./run.ts");
  return await startRun({ machine, files, env, log, takesFromInbox: role === "run" });
}

/** A child process inherits the environment by default, so no secret stays in it. */
function forgetSecrets(): void {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith("WEBHOOK_SECRET")) delete process.env[name];
  }
}

let isStopping = false;

/** Stops in order. A second signal, or stopping for too long, ends the process at once. */
function stop(signal: string, service: RunningService, log: Log, graceMs: number): void {
  if (isStopping) process.exit(0);
  isStopping = true;
  log.info({ event: "service.stopping", signal }, `Stopping on ${signal}`);
  setTimeout(() => process.exit(0), graceMs + stopMarginMs).unref();
  service.close().then(
    () => {
      log.info({ event: "service.stopped" }, "Stopped");
      log.flush(() => process.exit(0));
    },
    (error) => die(log, error),
  );
}

/** After a fault the state of the service is unknown. The log has the error, and the supervisor restarts the service. */
function die(log: Log, error: unknown): void {
  process.exitCode = exitCodeOf("internal_error");
  log.fatal({ event: "service.failed", err: error }, "A fault in Hotpush ended the service");
  log.flush(() => process.exit());
  setTimeout(() => process.exit(), 1_000);
}

function fail(error: unknown): never {
  if (!(error instanceof ProblemError)) {
    console.error(error);
    process.exit(exitCodeOf("internal_error"));
  }
  for (const line of error.problem.detail.split("\n")) console.error(`hotpush: ${line}`);
  process.exit(exitCodeOf(error.problem.code));
}

/** Node's lenient parser accepts requests that two programs read differently, which allows request smuggling. */
function refuseLenientParser(): void {
  const options = [...process.execArgv, process.env.NODE_OPTIONS ?? ""].join(" ");
  if (!options.includes("--insecure-http-parser")) return;
  const detail =
    "Node was started with --insecure-http-parser, which allows request smuggling. Start it without that option.";
  throw new ProblemError({ code: "configuration_invalid", detail });
}
