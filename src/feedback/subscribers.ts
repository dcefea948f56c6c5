import type { ProjectSettings } from "../config/project.ts";
import type { Subscriber } from "../deployments/outbox.ts";

/** Who is sent reports on the deployments of a project. */
export function subscribersOf({ notify, commitStatus }: SubscriberSettings): readonly Subscriber[] {
  const targets = notify.targets.map(({ name }) => ({ name, wantsStarts: notify.on === "all" }));
  return commitStatus ? [{ name: commitStatusName, wantsStarts: true }, ...targets] : targets;
}

export type SubscriberSettings = Pick<ProjectSettings, "notify" | "commitStatus">;

/** The subscriber that shows results on commits. */
export const commitStatusName = "commit status";
