import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "#config/values";
import { type ComposeHook, plainText } from "#platform/compose";
import {
  type Container,
  discardContainers,
  type Exec,
  execIn,
  inspectContainer,
  listContainers,
} from "#platform/docker/containers";
import { diagnose, isStillReady, redactedLines, waitReady } from "#platform/docker/health";
import type { Containers, Rollout, ServiceRollout } from "./context.ts";
import type { RolloutService } from "./project.ts";
import { note, timed } from "./report.ts";

/** A migration of a large table takes its time; the deployment's own time-out is the effective limit. */
export const endTimeoutMs = 6 * 60 * 60_000;
const pollMs = 200;

const startTimeoutMs = 300_000;

/**
 * Limit of one `docker compose up`. Compose waits until the engine has stopped the old containers, each within its stop
 * grace period, and gives hooks no limit.
 *
 * @param stopped the old containers that it stops
 */
export function upTimeoutMs(services: readonly RolloutService[], stopped: Containers): number {
  if (services.some(({ hooks }) => hooks.post_start.length + hooks.pre_stop.length > 0)) return endTimeoutMs;
  return startTimeoutMs + 1_000 * stopped.reduce((sum, { stopGraceS }) => sum + stopGraceS, 0);
}

/** All containers of the service, running or not, oldest first. */
export function containersOf({ engine, project, service }: ServiceRollout): Promise<Containers> {
  return listContainers(engine, project.name, service.name);
}

/**
 * Waits until all of `containers` are ready.
 *
 * @param mayEnd whether exit code 0 is acceptable too: the service may be a one-shot one
 * @returns the milliseconds until the last one was ready, and whether all ran to their end instead, with exit code 0
 * @throws ProblemError `container_not_healthy` with the last health output and log lines of the first one that is not
 */
export async function waitAllReady(on: ServiceRollout, containers: Containers, mayEnd: boolean = false) {
  const { engine, service, signal } = on;
  const waitFor = async (container: Container) => {
    const options = { timeoutMs: healthyLimitMs(service, container), mayEnd, signal };
    const readiness = await waitReady(engine, container.id, options);
    if (typeof readiness === "string") return readiness;
    throw await diagnose(engine, container, readiness.fault);
  };
  const areEnded = (states: readonly string[]) =>
    states.length > 0 && states.every((state) => state === "ended");
  const wait = () => Promise.all(containers.map(waitFor));
  const { result, durationMs } = await timed(on, "healthy", wait, (states) => {
    if (areEnded(states)) return "it ran to its end: exit code 0, and no restart policy";
    return states.includes("steady") ? "it has no health check: it ran for 3 s without a restart" : "";
  });
  return { healthyAfterMs: durationMs, haveEnded: areEnded(result) };
}

/**
 * Waits for Docker's verdict on services that others await with `service_healthy`, as compose does. One pass of our own
 * early check is not enough for that: the first start of a database runs a temporary server, which passes too. Docker may first
 * check after minutes (`interval`): after the time that the service has to get healthy, its verdict is waited for no more.
 *
 * @throws ProblemError `container_not_healthy`
 */
export async function awaitDockersHealth(rollout: Rollout, names: ReadonlySet<string>): Promise<void> {
  const { engine, project, signal } = rollout;
  for (const name of names) {
    const starting = (await listContainers(engine, project.name, name)).filter(isUndecided);
    if (starting.length === 0) continue;
    const service = project.services.find((one) => one.name === name);
    const limitsMs = starting.map((container) => service && healthyLimitMs(service, container));
    const timeoutMs = Math.max(...limitsMs.map((ms) => ms ?? endTimeoutMs));
    const deadlineMs = performance.now() + timeoutMs;
    const wait = async () => {
      for (const container of starting) {
        let now: Container | null = container;
        while (now !== null && isUndecided(now)) {
          if (performance.now() > deadlineMs) return false;
          await sleep(pollMs, undefined, { signal });
          now = await inspectContainer(engine, container.id);
        }
        if (now?.health !== "healthy") throw await diagnose(engine, container, "did not get healthy");
      }
      return true;
    };
    const late = `not known from Docker's check after ${formatDuration(timeoutMs)}, so others start without it`;
    const detail = (isKnown: boolean) => (isKnown ? "by Docker's check, which others await" : late);
    await timed({ ...rollout, service: { name } }, "healthy", wait, detail);
  }
}

/** The health check may be of the image, which the compose file says nothing of. */
function healthyLimitMs({ isLimitGiven, healthyTimeoutMs }: RolloutService, { unhealthyAfterMs }: Container) {
  if (isLimitGiven || unhealthyAfterMs === 0) return healthyTimeoutMs;
  return Math.max(healthyTimeoutMs, unhealthyAfterMs + 10_000);
}

/** Docker itself decides when the start period and its retries are over. */
function isUndecided({ status, health }: Container): boolean {
  return health === "starting" && (status === "running" || status === "restarting");
}

/** @throws ProblemError `container_not_healthy` if one was restarted, is gone or is no longer healthy */
export async function requireStillServing({ engine }: ServiceRollout, containers: Containers): Promise<void> {
  for (const container of containers) {
    const now = await inspectContainer(engine, container.id);
    if (now && isStillReady(now)) continue;
    throw await diagnose(engine, container, `was ready, then ${fallOf(now)}`);
  }
}

function fallOf(now: Container | null): string {
  if (now === null) return "removed by somebody else";
  if (now.health === "unhealthy") return "unhealthy: its health check failed too often";
  if (now.status === "restarting" || now.restartCount > 0) return "crashed and was restarted";
  return now.status === "exited" ? `ended with exit code ${now.exitCode}` : now.status;
}

/**
 * Stops and removes containers, after their `pre_stop` hooks.
 *
 * @param longestGraceS the most seconds between SIGTERM and SIGKILL
 * @returns those that could not be removed, with the reason
 */
export async function stopAndRemove(on: ServiceRollout, containers: Containers, longestGraceS: number) {
  const running = containers.filter(({ status }) => status === "running");
  await Promise.all(running.map((container) => runHooks(on, "pre_stop", container)));
  return discardContainers(on.engine, containers, longestGraceS);
}

/**
 * Runs hooks of the compose file in a running container, one after the other: `pre_stop` within its stop grace period. Compose
 * does the same when it starts or stops a container itself. A hook that fails or hangs is reported, and ends them: it keeps no
 * container from being stopped, because another version serves by then.
 */
export async function runHooks(
  on: ServiceRollout,
  kind: "post_start" | "pre_stop",
  container: Container,
): Promise<void> {
  const limitMs = kind === "pre_stop" ? container.stopGraceS * 1_000 : endTimeoutMs;
  const over = new AbortController();
  const late = sleep(limitMs, "late" as const, { signal: over.signal }).catch(() => "late" as const);
  for (const hook of on.service.hooks[kind]) {
    const fault = await Promise.race([late, faultOf(on, container, hook, limitMs)]);
    const name = `${kind} of ${container.name} (${hook.command[0]})`;
    if (fault === "late") note(on, `${name} did not end within ${formatDuration(limitMs)}, and was given up`);
    else note(on, fault === null ? `${name} ended with exit code 0` : `${name} failed: ${fault}`);
    if (fault !== null) break;
  }
  over.abort();
}

/** Why a hook failed; null if it ended with exit code 0. */
async function faultOf(
  { engine }: ServiceRollout,
  container: Container,
  hook: ComposeHook,
  patienceMs: number,
): Promise<string | null> {
  const exec = execOf(hook);
  try {
    const { exitCode, output } = await execIn(engine, container.id, exec, patienceMs);
    if (exitCode === 0) return null;
    const secrets = { ...container, environment: [...container.environment, ...(exec.Env ?? [])] };
    const last = redactedLines(secrets, output.trim()).at(-1);
    return `exit code ${exitCode}${last ? `: ${last}` : ""}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function execOf({ command, user, privileged, working_dir, environment = {} }: ComposeHook): Exec {
  return {
    Cmd: command.map(plainText),
    Env: Object.entries(environment).flatMap(([name, value]) =>
      value === null ? [] : [`${name}=${plainText(value)}`],
    ),
    ...(user !== undefined && { User: plainText(user) }),
    ...(privileged !== undefined && { Privileged: privileged }),
    ...(working_dir !== undefined && { WorkingDir: plainText(working_dir) }),
  };
}
