import { setTimeout as sleep } from "node:timers/promises";
import type { Container } from "./container.ts";
import { type Engine, EngineRefusal, getJson, readJson } from "./engine.ts";

/** Asks a container itself, by its own health check, as long as Docker has not. */
export interface Probing {
  /** Whether the check has ended with exit code 0. */
  readonly hasPassed: () => boolean;
  /** Starts no other check. */
  readonly end: () => void;
}

const shortestPauseMs = 100;
const longestPauseMs = 400;

/**
 * Runs the health check of a container again and again until it passes. Docker runs it in the container in the same way, but
 * not before its interval is over, which is 30 s by default.
 */
export function startProbing(engine: Engine, id: string): Probing {
  const over = new AbortController();
  let hasPassed = false;
  const probe = async () => {
    const command = await healthCommand(engine, id);
    const firstMs = performance.now();
    while (command !== null && !over.signal.aborted) {
      const startedMs = performance.now();
      hasPassed = await passes(engine, id, command);
      if (hasPassed) return;
      const nowMs = performance.now();
      await sleep(pauseMs(nowMs - startedMs, nowMs - firstMs), undefined, { signal: over.signal });
    }
  };
  probe().catch(() => {}); // The caller asks Docker as well, and sees why.
  return { hasPassed: () => hasPassed, end: () => over.abort() };
}

/**
 * A check gets a third of the time, because many containers may start at once, and less the longer an app takes: what serves
 * needs the processor too.
 */
function pauseMs(tookMs: number, waitedMs: number): number {
  return Math.max(shortestPauseMs, Math.min(2 * tookMs, longestPauseMs), waitedMs / 5);
}

/** Runs the health checks of those that Docker has not checked yet. @returns them all; those that pass are healthy */
export async function withOwnHealth(
  engine: Engine,
  containers: readonly Container[],
): Promise<readonly Container[]> {
  const asked = containers.map(async (container) => {
    if (container.status !== "running" || container.health !== "starting") return container;
    const command = await healthCommand(engine, container.id);
    const isHealthy = command !== null && (await passes(engine, container.id, command));
    return isHealthy ? { ...container, health: "healthy" as const } : container;
  });
  return Promise.all(asked);
}

interface Configured {
  readonly Config: {
    readonly Shell?: readonly string[] | null;
    readonly Healthcheck?: { readonly Test?: readonly string[] | null } | null;
  };
}

/** Null if the container has no health check, or is gone. */
async function healthCommand(engine: Engine, id: string): Promise<readonly string[] | null> {
  const { Config } = await getJson<Configured>(engine, `/containers/${id}/json`);
  const [kind, ...words] = Config.Healthcheck?.Test ?? [];
  if (kind === "CMD" && words.length > 0) return words;
  return kind === "CMD-SHELL" ? [...(Config.Shell ?? ["/bin/sh", "-c"]), ...words] : null;
}

async function passes(engine: Engine, id: string, command: readonly string[]): Promise<boolean> {
  try {
    const exec = { Cmd: command, AttachStdout: true, AttachStderr: true };
    const { Id } = readJson<{ readonly Id: string }>(await engine.post(`/containers/${id}/exec`, exec));
    await engine.post(`/exec/${Id}/start`, { Detach: false, Tty: false }); // Answers until the command ends.
    const { ExitCode } = await getJson<{ readonly ExitCode: number | null }>(engine, `/exec/${Id}/json`);
    return ExitCode === 0;
  } catch (error) {
    // It does not run yet, or no more, or it has no such program.
    if (error instanceof EngineRefusal) return false;
    throw error;
  }
}
