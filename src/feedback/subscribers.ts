import { environmentHosts } from "../config/commit-status.ts";
import type { ProjectSettings } from "../config/project.ts";
import type { Subscriber } from "../deployments/outbox.ts";

/** Who is sent reports on the deployments of a project. */
export function subscribersOf({
  notify,
  commitStatus,
  environment,
}: SubscriberSettings): readonly Subscriber[] {
  const targets = notify.targets.map(({ name }) => ({ name, wantsStarts: notify.on === "all" }));
  const isShown =
    environment !== null && commitStatus !== null && environmentHosts.includes(commitStatus.host);
  return [
    ...(commitStatus ? [{ name: commitStatusName, wantsStarts: true }] : []),
    ...(isShown ? [{ name: environmentName, wantsStarts: true }] : []),
    ...targets,
  ];
}

export type SubscriberSettings = Pick<ProjectSettings, "notify" | "commitStatus" | "environment">;

/** The subscriber that shows results on commits. */
export const commitStatusName = "commit status";

/** The subscriber that shows deployments to an environment. */
export const environmentName = "environment";
