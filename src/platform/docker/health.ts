import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "#config/values";
import { ProblemError } from "#problems";
import { createRedactor, looksLikeSecretFile, readSecretFile, secretsInVariable } from "#redaction";
import { type Container, execIn, inspectContainer, plainLog } from "./containers.ts";
import { type Engine, EngineRefusal } from "./engine.ts";

/** `steady` has no health check; `ended` did so with exit code 0, and may. `fault` is the end of a sentence on the container. */
export type Readiness = "healthy" | "steady" | "ended" | { readonly fault: string };

/** Each look costs the engine some milliseconds, while many containers start. */
const pollMs = 200;

/** A container without a health check counts as ready when it has run this long without a restart. */
const steadyMs = 3_000;

/**
 * Waits until the container is ready, or cannot become ready any more. A restart counts as a failure: a version that
 * crashes and comes back is not healthy, whatever it reports in between.
 */
export async function waitReady(
  engine: Engine,
  id: string,
  { timeoutMs, mayEnd, signal }: { timeoutMs: number; mayEnd: boolean; signal: AbortSignal },
): Promise<Readiness> {
  const startedMs = performance.now();
  const probing = startProbing(engine, id);
  try {
    for (;;) {
      const hasPassed = probing.hasPassed();
      const container = await inspectContainer(engine, id);
      const waitedMs = performance.now() - startedMs;
      const readiness = readinessOf(container, { waitedMs, timeoutMs, mayEnd, hasPassed });
      if (readiness) return readiness;
      await Promise.race([sleep(pollMs, undefined, { signal }), ...(hasPassed ? [] : [probing.passed])]);
    }
  } finally {
    probing.end();
  }
}

/**
 * The readiness of `container` after `waitedMs`, or null while it is undecided.
 *
 * @param options.hasPassed whether its health check has passed, though Docker may not have run it yet
 */
export function readinessOf(
  container: Container | null,
  options: { waitedMs: number; timeoutMs: number; mayEnd: boolean; hasPassed: boolean },
): Readiness | null {
  const { waitedMs, timeoutMs, mayEnd, hasPassed } = options;
  if (container === null) return { fault: "was removed by somebody else before it was healthy" };
  const { status, health, exitCode, restartCount } = container;
  if (status === "restarting" || restartCount > 0)
    return { fault: "crashed and was restarted before it was healthy" };
  if (status === "exited" || status === "dead" || status === "removing")
    return mayEnd && exitCode === 0
      ? "ended"
      : { fault: `ended with exit code ${exitCode} before it was healthy` };
  if (health === "unhealthy") return { fault: "is unhealthy: its health check failed too often" };
  if (status === "running" && (health === "healthy" || (health === "starting" && hasPassed)))
    return "healthy";
  if (status === "running" && health === null && waitedMs >= steadyMs) return "steady";
  if (waitedMs <= timeoutMs) return null;
  return { fault: `was not healthy after ${formatDuration(waitedMs)} (last: ${health ?? "running"})` };
}

/** Whether the container has ended with exit code 0. */
export function hasEndedWell({ status, exitCode }: Container): boolean {
  return status === "exited" && exitCode === 0;
}

/** Whether the container serves now: healthy, or running without a health check. */
export function isServing(container: Container): boolean {
  return container.status === "running" && (container.health === "healthy" || container.health === null);
}

/** Whether a container that was ready still is. Docker itself may not have run its health check yet. */
export function isStillReady({ status, health, restartCount }: Container): boolean {
  return status === "running" && health !== "unhealthy" && restartCount === 0;
}

/**
 * Runs the health check of a container again and again until it passes. Docker runs it in the container in the same way, but
 * not before its interval is over, which is 30 s by default.
 *
 * @returns `hasPassed`: whether the check has ended with exit code 0; `passed` resolves then, and only then; `end` starts no other one
 */
export function startProbing(engine: Engine, id: string) {
  const over = new AbortController();
  const { promise: passed, resolve: pass } = Promise.withResolvers<void>();
  let hasPassed = false;
  const probe = async () => {
    const container = await inspectContainer(engine, id);
    const firstMs = performance.now();
    while (container?.healthCommand && !over.signal.aborted) {
      const startedMs = performance.now();
      hasPassed = await passes(engine, container);
      if (hasPassed) return pass();
      const nowMs = performance.now();
      // A check gets a third of the time, because many containers may start at once, and less the longer an app takes.
      const pauseMs = Math.max(100, Math.min(2 * (nowMs - startedMs), 400), (nowMs - firstMs) / 5);
      await sleep(pauseMs, undefined, { signal: over.signal });
    }
  };
  probe().catch(() => {}); // The caller asks Docker as well, and sees why.
  return { hasPassed: () => hasPassed, passed, end: () => over.abort() };
}

/** Runs the health checks of those that Docker has not checked yet. @returns them all; those that pass are healthy */
export async function withOwnHealth(
  engine: Engine,
  containers: readonly Container[],
): Promise<readonly Container[]> {
  const asked = containers.map(async (container) => {
    if (container.status !== "running" || container.health !== "starting") return container;
    return (await passes(engine, container)) ? { ...container, health: "healthy" as const } : container;
  });
  return Promise.all(asked);
}

async function passes(engine: Engine, { id, healthCommand }: Container): Promise<boolean> {
  try {
    return healthCommand !== null && (await execIn(engine, id, { Cmd: healthCommand })).exitCode === 0;
  } catch (error) {
    // It does not run yet, or no more, or it has no such program.
    if (error instanceof EngineRefusal) return false;
    throw error;
  }
}

/** Explains the `fault` of `container`, with its last health output and its last log lines. */
export async function diagnose(engine: Engine, container: Container, fault: string): Promise<ProblemError> {
  const now = (await inspectContainer(engine, container.id)) ?? container;
  return new ProblemError({
    code: "container_not_healthy",
    detail: `Container ${container.name} ${fault}.`,
    evidence: await evidenceOf(engine, now, [`/containers/${container.id}`]),
  });
}

/** The parts of a container that may hold secrets. */
export type SecretHolder = Pick<Container, "environment" | "mounts">;

/**
 * What explains a container's failure: the output of its last health check, and its last log lines.
 *
 * @param sources paths of the engine that may have its log
 */
export async function evidenceOf(
  engine: Engine,
  container: SecretHolder & Pick<Container, "healthLog">,
  sources: readonly string[],
): Promise<readonly string[]> {
  // While a container is stopped, a check says nothing or cannot start; the one before it says why.
  const said = container.healthLog.findLast(
    (text) => text !== "" && !text.startsWith("OCI runtime exec failed"),
  );
  const health = redactedLines(container, said ?? container.healthLog.at(-1) ?? "").filter(Boolean);
  const log = await logLines(engine, container, sources, 20);
  return [...section("Last health check:", health), ...section("Last log lines:", log)];
}

/** The last lines that a container wrote to its outputs, with its known secrets redacted. */
export async function lastLogLines(engine: Engine, id: string, count: number): Promise<readonly string[]> {
  const container = await inspectContainer(engine, id).catch(() => null);
  return container ? logLines(engine, container, [`/containers/${id}`], count) : [];
}

async function logLines(
  engine: Engine,
  container: SecretHolder,
  sources: readonly string[],
  count: number,
): Promise<readonly string[]> {
  for (const source of sources) {
    // Logs explain a failure. If they cannot be read, that must not hide the failure.
    const raw = await engine.get(`${source}/logs?stdout=1&stderr=1&tail=${count}`).catch(() => null);
    if (raw) return redactedLines(container, plainLog(raw)).filter(Boolean).slice(-count);
  }
  return [];
}

/** The lines of `text` with the secrets from the container's environment and from files mounted into it redacted. */
export function redactedLines(container: SecretHolder, text: string): readonly string[] {
  return createRedactor(secretsIn(container)).text(text).split("\n");
}

/** The secrets in a container's environment and in the files mounted into it. */
export function secretsIn(container: SecretHolder): readonly string[] {
  const secrets = container.environment.flatMap((variable) => secretsOf(container, variable));
  const mounted = container.mounts.filter(({ target }) => target.startsWith("/run/secrets/"));
  return [...secrets, ...mounted.map(({ source }) => readSecretFile(source))];
}

function secretsOf({ mounts }: SecretHolder, variable: string): readonly string[] {
  const [, name = "", value = ""] = /^([^=]*)=(.*)$/s.exec(variable) ?? [];
  const file = looksLikeSecretFile(name) ? mounts.find(({ target }) => target === value) : undefined;
  return [...secretsInVariable(name, value), ...(file ? [readSecretFile(file.source)] : [])];
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
}
