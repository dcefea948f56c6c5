import type { Container } from "../../platform/docker/container.ts";
import { diagnose } from "../../platform/docker/diagnosis.ts";
import { waitReady } from "../../platform/docker/health.ts";
import { ProblemError } from "../../problems.ts";
import type { RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { timed } from "../report/report.ts";

export interface AllReady {
  /** Milliseconds until the last one was ready. */
  readonly healthyAfterMs: number;
  /** Whether all ran to their end instead, with exit code 0. */
  readonly haveEnded: boolean;
}

/**
 * Waits until all of `containers` are ready.
 *
 * @param mayEnd whether exit code 0 is acceptable too: the service may be a one-shot one
 * @throws ProblemError `container_not_healthy` with the last health output and log lines of the first one that is not
 */
export async function waitAllReady(
  rollout: Rollout,
  service: RolloutService,
  containers: readonly Container[],
  { mayEnd }: { readonly mayEnd: boolean },
): Promise<AllReady> {
  const { engine, signal, report } = rollout;
  const wait = () =>
    Promise.all(
      containers.map(async (container) => {
        const readiness = await waitReady(engine, container.id, service.healthyTimeoutMs, signal).catch(
          interrupted,
        );
        if (readiness.kind === "ready") return readiness.hasHealthCheck ? "healthy" : "steady";
        if (mayEnd && readiness.kind === "ended" && readiness.exitCode === 0) return "ended";
        throw await diagnose(engine, container, readiness);
      }),
    );
  const { result, durationMs } = await timed({ report, service }, "healthy", wait, describe);
  return { healthyAfterMs: durationMs, haveEnded: isEnded(result) };
}

type State = "healthy" | "steady" | "ended";

function isEnded(states: readonly State[]): boolean {
  return states.length > 0 && states.every((state) => state === "ended");
}

function describe(states: readonly State[]): string {
  if (isEnded(states)) return "it ran to its end: exit code 0, and no restart policy";
  return states.includes("steady") ? "it has no health check: it ran for 3 s without a restart" : "";
}

function interrupted(error: unknown): never {
  if (error instanceof Error && error.name === "AbortError") {
    throw new ProblemError({ code: "rollout_interrupted", detail: "The roll-out was asked to stop." }, error);
  }
  throw error;
}
