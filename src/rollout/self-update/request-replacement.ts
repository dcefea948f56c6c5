import type { ComposeTarget } from "../../platform/compose/commands.ts";
import type { Container } from "../../platform/docker/container.ts";
import type { RolloutProject, RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { outcomeOf, type ServiceOutcome } from "../report/report.ts";
import { writeReplacementRequest } from "./replacement-request.ts";

type Replacing = Pick<Rollout, "own" | "statePath" | "target" | "report"> & {
  readonly project: Pick<RolloutProject, "name">;
};

/**
 * Asks the service in this container to remove it, now that a new container serves. The service does so when the
 * deployment of this roll-out is recorded. A roll-out by hand belongs to no deployment, so the service also waits for
 * the end of the roll-out itself.
 */
export function requestRemoval({
  own,
  statePath,
  lockPath,
}: Pick<Rollout, "own" | "statePath" | "lockPath">): void {
  if (own) writeReplacementRequest(statePath, { old: own.id, helper: null, lockPath });
}

/**
 * Asks the service in this container to let a helper container replace it, because two of it cannot run at once. The
 * service does so when the deployment of this roll-out is recorded. Until then nothing changes, and new pushes wait for
 * the new container.
 */
export function requestRecreation(
  { own, statePath, project, target, report }: Replacing,
  service: RolloutService,
  containers: readonly Container[],
  { reason, commit }: { readonly reason: string; readonly commit: string },
): ServiceOutcome {
  if (own) {
    const args = ["rollout", "--no-build", ...locationOf(target)];
    const helper = {
      name: `${project.name}-${service.name}-helper`,
      project: project.name,
      args: [...args, "--commit", commit, service.name],
    };
    writeReplacementRequest(statePath, { old: own.id, helper });
  }
  const text = `is Hotpush itself: a helper container replaces it when this deployment has ended (${reason})`;
  report({ event: "note", service: service.name, text });
  return outcomeOf(service, "postponed", { old: containers }, { reason });
}

/**
 * The helper has the mounts of this container, but not the link at the host's path (locate-project.ts). So it gets the
 * directory as it is in here, and makes the link itself: then the paths of the files are right for it, too.
 */
function locationOf({ directoryHere, projectDirectory, files }: ComposeTarget): readonly string[] {
  return ["--directory", directoryHere ?? projectDirectory, ...files.flatMap((file) => ["--file", file])];
}
