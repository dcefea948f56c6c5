import { ProblemError } from "../../problems.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { Container } from "../engine/container.ts";
import { diagnose } from "../engine/diagnosis.ts";
import { waitReady } from "../engine/health.ts";
import { timed } from "../report/report.ts";

/**
 * Waits until every one of `containers` is ready.
 *
 * @returns milliseconds until the last one was
 * @throws ProblemError `container_not_healthy` with the last health output and log lines of the first one that is not
 */
export async function waitAllReady(
  rollout: Rollout,
  service: Service,
  containers: readonly Container[],
): Promise<number> {
  const { engine, signal, report } = rollout;
  const wait = () =>
    Promise.all(
      containers.map(async (container) => {
        const readiness = await waitReady(engine, container.id, service.healthyTimeoutMs, signal).catch(
          interrupted,
        );
        if (readiness.kind === "ready") return readiness.hasHealthCheck;
        throw await diagnose(engine, container, readiness);
      }),
    );
  const { durationMs } = await timed(report, service.name, "healthy", wait, (checked) =>
    checked.every(Boolean) ? "" : "it has no health check: it ran for 3 s without a restart",
  );
  return durationMs;
}

function interrupted(error: unknown): never {
  if (error instanceof Error && error.name === "AbortError") {
    throw new ProblemError({ code: "rollout_interrupted", detail: "The roll-out was asked to stop." }, error);
  }
  throw error;
}
