import { setTimeout as sleep } from "node:timers/promises";
import type { ComposeHook } from "#platform/compose-model";
import type { Container } from "#platform/docker/containers";
import { type Exec, execIn } from "#platform/docker/exec";
import { redactedLines } from "#platform/docker/health";
import type { Containers, ServiceRollout } from "./context.ts";
import { note } from "./report.ts";

/**
 * Runs the `pre_stop` hooks of containers that will be stopped, in those that run.
 *
 * @param longestS the most seconds for those of one container, even if its stop grace period is longer
 */
export async function runStopHooks(
  on: ServiceRollout,
  containers: Containers,
  longestS: number = Number.POSITIVE_INFINITY,
): Promise<void> {
  const running = containers.filter(({ status }) => status === "running");
  await Promise.all(running.map((container) => runHooks(on, "pre_stop", container, longestS)));
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
  longestS: number = Number.POSITIVE_INFINITY,
): Promise<void> {
  const limitS = Math.min(container.stopGraceS, longestS);
  const over = new AbortController();
  const late = sleep(limitS * 1_000, "late" as const, { signal: over.signal }).catch(() => "late" as const);
  for (const hook of on.service.hooks[kind]) {
    const fault = await Promise.race([late, faultOf(on, container, hook, limitS * 1_000)]);
    const name = `${kind} of ${container.name} (${hook.command[0]})`;
    if (fault === "late") note(on, `${name} did not end within ${limitS} s, and was given up`);
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
