import { formatDuration } from "../../config/duration.ts";
import { ProblemError } from "../../problems.ts";
import { type Container, inspectContainer, lastLogLines } from "./container.ts";
import type { Engine } from "./engine.ts";
import { evidenceOf, shownLogLines } from "./evidence.ts";
import type { Readiness } from "./health.ts";

/** Why a new container is not left in service. */
export type Finding = Readiness | { readonly kind: "fell" };

/** Says why `container` is not ready, with its last health output and its last log lines. */
export async function diagnose(
  engine: Engine,
  container: Container,
  readiness: Finding,
): Promise<ProblemError> {
  const now = (await inspectContainer(engine, container.id)) ?? container;
  const evidence = evidenceOf(now, await lastLogLines(engine, container.id, shownLogLines));
  return new ProblemError({
    code: "container_not_healthy",
    detail: `Container ${container.name} ${reasonOf(readiness, now)}.`,
    evidence,
  });
}

function reasonOf(readiness: Finding, { health }: Container): string {
  switch (readiness.kind) {
    case "ended":
      return `ended with exit code ${readiness.exitCode} before it was healthy`;
    case "restarting":
      return "crashed and was restarted before it was healthy";
    case "unhealthy":
      return "is unhealthy: its health check failed too often";
    case "late":
      return `was not healthy after ${formatDuration(readiness.waitedMs)} (last: ${health ?? "running"})`;
    case "gone":
      return "was removed by somebody else before it was healthy";
    case "fell":
      return "was healthy, but fell as soon as it got requests";
    case "ready":
      return "is healthy";
  }
}
