import process from "node:process";
import type { RunningFront } from "#front/front";
import { cleanOutput } from "#platform/terminal";
import type { Log } from "./log.ts";
import { exitCodeOf, ProblemError, refuseOtherSystems } from "./problems.ts";
import type { startRun } from "./run.ts";

/** How much longer than the grace of a running deployment stopping may take. */
const stopMarginMs = 4_500;

/** The service as a whole, or one of its two halves. */
type Role = "all" | "front" | "run";

cleanOutput(process.stdout, process.stderr);
try {
  const command = process.argv.slice(2);
  const [word, ...rest] = command;
  if (word === undefined) await main("all");
  else if (rest.length === 0 && (word === "front" || word === "run")) await main(word);
  else {
    const { runCommandLine } = await import("#cli/command-line");
    process.exitCode = await runCommandLine(command, process.env);
  }
} catch (error) {
  fail(error);
}

async function main(role: Role): Promise<void> {
  refuseOtherSystems();
  // Loaded here because a command needs none of it and must answer at once; and together, which is faster than one by one.
  const [{ withDotenv }, { loadConfig }, { openLog }, projectFiles, runHalf, frontHalf] = await Promise.all([
    import("#platform/env-file"),
    import("#config/service"),
    import("./log.ts"),
    import("#config/project-files"),
    role === "front" ? null : import("./run.ts"),
    role === "run" ? null : import("#front/front"),
  ]);
  const env = withDotenv(process.env, process.cwd());
  if (role !== "all" && !env.PROJECTS_PATH) {
    const detail = `PROJECTS_PATH is not set: hotpush ${role} serves the projects of a directory. Without it, run: hotpush`;
    throw new ProblemError({ code: "configuration_invalid", detail });
  }
  const { service, project, warnings } = loadConfig(env);
  // A child process inherits the environment by default, so no secret stays in it.
  for (const name of Object.keys(process.env))
    if (name.startsWith("WEBHOOK_SECRET")) delete process.env[name];
  const log = openLog(service.logLevel);
  for (const warning of warnings) log.warn({ event: "config.unwise" }, warning);
  process.on("uncaughtException", (error) => die(log, error));
  process.on("unhandledRejection", (error) => die(log, error));
  // A closed terminal must not stop the service, and a lost reader must not kill it. SIGUSR1 would start Node's
  // debugger, which lets any user of the machine run code in the service.
  for (const signal of ["SIGHUP", "SIGPIPE", "SIGUSR1"] as const) process.on(signal, () => {});
  const stopping = new AbortController();
  const { projectsPath } = service;
  const secretsPath = role === "front" ? null : service.secretsPath;
  const files = project
    ? projectFiles.onlyProject(project)
    : projectFiles.readProjectFiles({ projectsPath: projectsPath ?? "", secretsPath, log });
  const shared = { service, files, stopping: stopping.signal, log };
  let front: RunningFront | undefined;
  let run: Awaited<ReturnType<typeof startRun>> | undefined;
  const address = () => front?.address ?? null;
  const findFault = () => {
    if (runHalf === null) return null;
    return run ? run.findFault() : "The service is starting.";
  };
  // At the same time: `front` offers the first push until `run` takes it.
  const startingRun = runHalf?.startRun({ ...shared, env, isSplit: role === "run", address });
  const startingFront = frontHalf?.startFront({ ...shared, findFault });
  [run, front] = await Promise.all([startingRun, startingFront]);
  const close = async () => {
    stopping.abort();
    await run?.stop();
    await front?.close();
    await run?.close();
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.on(signal, () => stop(signal, close, log, service.shutdownGraceMs));
  if (front === undefined) {
    log.info({ event: "service.started" }, "Hotpush runs deployments");
    return;
  }
  const { address: host, port } = front.address;
  log.info({ event: "service.started", address: host, port }, `Hotpush listens on ${host}:${port}`);
}

let isStopping = false;

/** Stops in order. A second signal, or stopping for too long, ends the process at once. */
function stop(signal: string, close: () => Promise<void>, log: Log, graceMs: number): void {
  if (isStopping) process.exit(0);
  isStopping = true;
  log.info({ event: "service.stopping", signal }, `Stopping on ${signal}`);
  setTimeout(() => process.exit(0), graceMs + stopMarginMs).unref();
  close().then(
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
