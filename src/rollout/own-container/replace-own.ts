import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { Container } from "../engine/container.ts";
import type { ServiceOutcome } from "../report/report.ts";
import { writeReplacementRequest } from "./replacement-request.ts";

/**
 * Has the service in this container leave, now that a new container has taken its place: after the deployment that this
 * roll-out is part of, so that its record is finished.
 */
export function leaveLater({ own, statePath }: Pick<Rollout, "own" | "statePath">): void {
  if (own) writeReplacementRequest(statePath, { old: own.id, helper: null });
}

/**
 * Has the service in this container replaced by a helper container, because two of it cannot run: after the deployment
 * that this roll-out is part of. Until then nothing changes, and what is pushed waits for the new container.
 */
export function recreateLater(
  { own, statePath, project, target, report }: Rollout,
  service: Service,
  containers: readonly Container[],
  { reason, commit }: { readonly reason: string; readonly commit: string },
): ServiceOutcome {
  if (own) {
    const files = target.files.flatMap((file) => ["--file", file]);
    const args = ["rollout", "--no-build", "--directory", target.projectDirectory, ...files];
    const helper = {
      name: `${project.name}-${service.name}-helper`,
      project: project.name,
      args: [...args, "--commit", commit, service.name],
    };
    writeReplacementRequest(statePath, { old: own.id, helper });
  }
  const text = `is Hotpush itself: a helper container replaces it when this deployment has ended (${reason})`;
  report({ event: "note", service: service.name, text });
  const nothing = { healthyAfterMs: null, drainedMs: null, downtimeMs: null };
  const old = containers.map(({ name }) => name);
  return { service: service.name, outcome: "postponed", old, new: [], ...nothing, reason };
}
