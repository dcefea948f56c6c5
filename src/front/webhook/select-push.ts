import {
  isCommitId,
  isNullId,
  isPlainRepository,
  type MainRef,
  mainRefs,
  type Push,
} from "#deployments/push";
import { printable } from "#platform/terminal/printable";
import type { Reading, RefChange } from "./git-hosts.ts";

/** What a verified payload asks for: a deployment of one main branch, or nothing, and why not. */
export type Selection =
  | { readonly kind: "pong" }
  | { readonly kind: "ignored"; readonly reason: IgnoreReason }
  | { readonly kind: "unusable"; readonly field: string; readonly detail: string }
  | { readonly kind: "push"; readonly push: SelectedPush };

export type SelectedPush = Omit<Push, "host" | "mentionsSkip" | "digest" | "deliveryId">;

export type IgnoreReason = keyof typeof ignoreDetails;

const longestPusher = 100;

/** Why a delivery changes nothing, as the git host shows it. */
export const ignoreDetails = {
  other_event: "Only push events are deployed.",
  other_repository: "Only pushes of the repository that REPOSITORY names are deployed.",
  other_branch: "Only pushes to main or master are deployed.",
  branch_not_selected: "Only pushes to the branch that BRANCH names are deployed.",
  tag: "Only pushes to main or master are deployed, no tags.",
  branch_deleted: "The branch was deleted: there is nothing to deploy. The running version stays.",
} as const;

/** Which pushes count. */
export interface Selected {
  /** `owner/name`; null: any repository */
  readonly repository: string | null;
  /** In the order of preference, if one push moves several. */
  readonly refs: readonly MainRef[];
}

/** Decides what a reading asks for. */
export function selectPush(reading: Reading, { repository, refs }: Selected): Selection {
  if (reading.kind === "ping") return { kind: "pong" };
  if (reading.kind === "other-event") return ignored("other_event");
  if (reading.kind === "unusable") {
    const detail = `The body is signed correctly but ${reading.field} is not ${reading.expected}.`;
    return { kind: "unusable", field: reading.field, detail };
  }
  if (repository !== null && reading.repository?.toLowerCase() !== repository.toLowerCase()) {
    return ignored("other_repository");
  }
  let isDeleted = false;
  for (const ref of refs) {
    for (const change of reading.changes) {
      if (change.ref !== ref) continue;
      if (change.after !== null && !isNullId(change.after)) return selectChange(ref, change, reading);
      isDeleted = true;
    }
  }
  return ignored(isDeleted ? "branch_deleted" : whyNotSelected(reading.changes));
}

function whyNotSelected(changes: readonly RefChange[]): IgnoreReason {
  if (changes.some(({ ref }) => (mainRefs as readonly string[]).includes(ref))) return "branch_not_selected";
  const isTagOnly = changes.length > 0 && changes.every(({ ref }) => ref.startsWith("refs/tags/"));
  return isTagOnly ? "tag" : "other_branch";
}

function selectChange(
  ref: MainRef,
  { before, after }: RefChange,
  { repository, pusher }: Extract<Reading, { kind: "push" }>,
): Selection {
  if (!isCommitId(after)) {
    const detail = "The commit pushed is not 40 or 64 lower-case hexadecimal digits.";
    return { kind: "unusable", field: "/after", detail };
  }
  if (before !== null && !isNullId(before) && !isCommitId(before)) {
    const detail = "The commit before the push is not 40 or 64 lower-case hexadecimal digits.";
    return { kind: "unusable", field: "/before", detail };
  }
  const push = {
    ...{ ref, before: isCommitId(before) ? before : null, commit: after },
    // Nothing depends on the name, so one that is not plain is not kept.
    repository: isPlainRepository(repository) ? repository : null,
    pusher: printable(pusher?.slice(0, 10 * longestPusher) ?? "", longestPusher).trim() || null,
  };
  return { kind: "push", push };
}

function ignored(reason: IgnoreReason): Selection {
  return { kind: "ignored", reason };
}
