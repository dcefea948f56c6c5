import type { ComposeTarget } from "../../platform/compose/commands.ts";
import type { Container } from "../../platform/docker/container.ts";
import type { Project, Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { ServiceOutcome } from "../report/report.ts";
import { writeReplacementRequest } from "./replacement-request.ts";

type Replacing = Pick<Rollout, "own" | "statePath" | "target" | "report"> & {
  readonly project: Pick<Project, "name">;
};

/**
 * Has the service in this container leave, now that a new container has taken its place: after the deployment that this
 * roll-out is part of, so that its record is finished; and, as one by hand is part of none, after the roll-out itself.
 */
export function leaveLater({
  own,
  statePath,
  lockPath,
}: Pick<Rollout, "own" | "statePath" | "lockPath">): void {
  if (own) writeReplacementRequest(statePath, { old: own.id, helper: null, lockPath });
}

/**
 * Has the service in this container replaced by a helper container, because two of it cannot run: after the deployment
 * that this roll-out is part of. Until then nothing changes, and what is pushed waits for the new container.
 */
export function recreateLater(
  { own, statePath, project, target, report }: Replacing,
  service: Service,
  containers: readonly Container[],
  { reason, commit }: { readonly reason: string; readonly commit: string },
): ServiceOutcome {
  if (own) {
    const args = ["rollout", "--no-build", ...whereItIs(target)];
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

/**
 * The helper has the mounts of this container, but not the link that stands at the host's path in here: it locates the
 * project itself. Then that link is there too, so the files, which are on the host or seen from the directory, are right.
 */
function whereItIs({ directoryHere, projectDirectory, files }: ComposeTarget): readonly string[] {
  return ["--directory", directoryHere ?? projectDirectory, ...files.flatMap((file) => ["--file", file])];
}
