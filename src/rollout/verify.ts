import { setTimeout as sleep } from "node:timers/promises";
import type { ComposeHook } from "#platform/compose";
import { type Container, type Exec, execIn, inspectContainer } from "#platform/docker/containers";
import { diagnose, isStillReady, redactedLines, waitReady } from "#platform/docker/health";
import { sendHttp } from "#platform/http";
import { ProblemError } from "#problems";
import type { Containers, ServiceRollout } from "./context.ts";
import { note, timed } from "./report.ts";

/**
 * Waits until all of `containers` are ready.
 *
 * @param mayEnd whether exit code 0 is acceptable too: the service may be a one-shot one
 * @returns the milliseconds until the last one was ready, and whether all ran to their end instead, with exit code 0
 * @throws ProblemError `container_not_healthy` with the last health output and log lines of the first one that is not
 */
export async function waitAllReady(
  on: ServiceRollout,
  containers: Containers,
  { mayEnd }: { readonly mayEnd: boolean },
) {
  const { engine, service, signal } = on;
  const waitFor = async (container: Container) => {
    const readiness = await waitReady(engine, container.id, service.healthyTimeoutMs, signal);
    if (readiness.kind === "ready") return readiness.hasHealthCheck ? "healthy" : "steady";
    if (mayEnd && readiness.kind === "ended" && readiness.exitCode === 0) return "ended";
    throw await diagnose(engine, container, readiness);
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

/** @throws ProblemError `container_not_healthy` if one was restarted, is gone or is no longer healthy */
export async function requireStillServing(
  { engine }: Pick<ServiceRollout, "engine">,
  containers: Containers,
): Promise<void> {
  for (const container of containers) {
    const now = await inspectContainer(engine, container.id);
    if (now && isStillReady(now)) continue;
    throw await diagnose(engine, container, { kind: "fell" });
  }
}

/**
 * Checks the service through the proxy.
 *
 * @throws ProblemError `proxy_check_failed` with the last log lines of the first of the new containers
 */
export async function checkNewVersion(
  on: ServiceRollout,
  [fresh]: Containers,
  mostBad?: number,
): Promise<void> {
  try {
    await checkThroughProxy(on, mostBad);
  } catch (error) {
    if (!(error instanceof ProblemError) || error.problem.code !== "proxy_check_failed" || !fresh)
      throw error;
    const { evidence = [] } = (await diagnose(on.engine, fresh, { kind: "fell" })).problem;
    throw new ProblemError({ ...error.problem, evidence }, error);
  }
}

/**
 * Requests the service as its users do, if the label `hotpush.check` has a URL.
 *
 * @throws ProblemError `proxy_check_failed` with the last bad answer
 */
export async function checkThroughProxy(
  on: Pick<ServiceRollout, "report" | "service">,
  mostBad?: number,
): Promise<void> {
  const { name, checkUrl } = on.service;
  if (checkUrl === null) return;
  const check = async () => {
    const lastAnswer = await pollUntilGood(checkUrl, mostBad);
    if (lastAnswer === null) return;
    const detail = `${name} was healthy but did not answer well through the proxy at ${checkUrl} (last: ${lastAnswer}).`;
    throw new ProblemError({ code: "proxy_check_failed", detail });
  };
  await timed(on, "check", check, `${checkUrl} answers well`);
}

/** Of one request. */
const answerTimeoutMs = 5_000;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Bad answers in a row that make it fail. */
const tolerated = 5;

/** For a service that was down: nothing can be switched back, and a proxy may need seconds to see the new container. */
export const patient = Number.POSITIVE_INFINITY;

const checkPollMs = 100;
const checkTimeoutMs = 15_000;
/** Good answers in a row that make the check pass. */
const goodAnswers = 6;

/**
 * Requests `url`, through the proxy, until it has given a few good answers in a row (2xx, redirects followed).
 *
 * @returns the last bad answer if it does not, else null
 */
export async function pollUntilGood(url: string, mostBad: number = tolerated): Promise<string | null> {
  const deadlineMs = performance.now() + checkTimeoutMs;
  for (let good = 0, bad = 0; ; ) {
    const answer = await ask(url);
    good = answer === null ? good + 1 : 0;
    bad = answer === null ? 0 : bad + 1;
    if (good === goodAnswers) return null;
    if (answer !== null && (bad >= mostBad || performance.now() > deadlineMs)) return answer;
    await sleep(checkPollMs);
  }
}

/** Null if the answer is good, else a description of it. */
async function ask(url: string): Promise<string | null> {
  try {
    const status = await finalStatus(new URL(url), AbortSignal.timeout(answerTimeoutMs));
    return status >= 200 && status < 300 ? null : `status ${status}`;
  } catch (error) {
    return error instanceof Error ? error.message || error.name : String(error);
  }
}

async function finalStatus(url: URL, signal: AbortSignal, redirectsLeft = 10): Promise<number> {
  const { status, headers } = await sendHttp(url, { signal });
  if (!redirects.has(status) || !headers.location || redirectsLeft === 0) return status;
  return finalStatus(new URL(headers.location, url), signal, redirectsLeft - 1);
}

/** Runs the `pre_stop` hooks of containers that will be stopped, in those that run. */
export async function runStopHooks(on: ServiceRollout, containers: Containers): Promise<void> {
  const running = containers.filter(({ status }) => status === "running");
  await Promise.all(running.map((container) => runHooks(on, "pre_stop", container)));
}

/**
 * Runs hooks of the compose file in a running container, one after the other, within its stop grace period. Compose does the same
 * when it starts or stops a container itself. A hook that fails or hangs is reported, and ends them: it keeps no container
 * from being stopped, because another version serves by then.
 */
export async function runHooks(
  on: ServiceRollout,
  kind: "post_start" | "pre_stop",
  container: Container,
): Promise<void> {
  const limitMs = container.stopGraceS * 1_000;
  const over = new AbortController();
  const late = sleep(limitMs, "late" as const, { signal: over.signal }).catch(() => "late" as const);
  for (const hook of on.service.hooks[kind]) {
    const fault = await Promise.race([late, faultOf(on, container, hook, limitMs)]);
    const name = `${kind} of ${container.name} (${hook.command[0]})`;
    if (fault === "late") note(on, `${name} did not end within ${container.stopGraceS} s, and was given up`);
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

/** Compose keeps a `$` apart from its variables by doubling it, also in the model that it prints. */
function execOf({ command, user, privileged, working_dir, environment = {} }: ComposeHook): Exec {
  const plain = (text: string) => text.replaceAll("$$", () => "$");
  return {
    Cmd: command.map(plain),
    Env: Object.entries(environment).flatMap(([name, value]) =>
      value === null ? [] : [`${name}=${plain(value)}`],
    ),
    ...(user !== undefined && { User: plain(user) }),
    ...(privileged !== undefined && { Privileged: privileged }),
    ...(working_dir !== undefined && { WorkingDir: plain(working_dir) }),
  };
}
