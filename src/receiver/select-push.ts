import { printable } from "../platform/terminal/printable.ts";
import type { Reading, RefChange } from "./hosts/host.ts";
import { type CommitId, isCommitId, isMainRef, isNullId, type MainRef } from "./push.ts";

/** What a verified payload asks for: a deployment of one main branch, or nothing, and why not. */
export type Selection =
  | { readonly kind: "pong" }
  | { readonly kind: "ignored"; readonly reason: IgnoreReason }
  | { readonly kind: "unusable"; readonly field: string; readonly detail: string }
  | {
      readonly kind: "push";
      readonly change: MainChange;
      readonly repository: string | null;
      readonly pusher: string | null;
    };

export type IgnoreReason = keyof typeof ignoreDetails;

export interface MainChange {
  readonly ref: MainRef;
  readonly before: CommitId | null;
  readonly commit: CommitId;
}

const longestName = 256;
const longestPusher = 100;

/** Why a delivery changes nothing, as the git host shows it. */
export const ignoreDetails = {
  other_event: "Only push events are deployed.",
  other_repository: "Only pushes of the repository that REPOSITORY names are deployed.",
  other_branch: "Only pushes to main or master are deployed.",
  branch_not_selected: "Only pushes to the branch that BRANCH names are deployed.",
  tag: "Only pushes to main or master are deployed, no tags.",
  branch_deleted: "The branch was deleted: there is nothing to deploy. What runs stays as it is.",
} as const;

/** Which pushes count. */
export interface Selected {
  /** `owner/name`; null: any repository */
  readonly repository: string | null;
  readonly refs: readonly MainRef[];
}

/** Decides what a reading asks for; of several refs moved in one push, main goes before master. */
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
  const mainChanges = reading.changes.filter(({ ref }) => isMainRef(ref)).sort(byRef);
  if (mainChanges.length === 0) return ignored(isTagOnly(reading.changes) ? "tag" : "other_branch");
  const selected = mainChanges.filter(({ ref }) => (refs as readonly string[]).includes(ref));
  if (selected.length === 0) return ignored("branch_not_selected");
  const moved = selected.find(({ after }) => after !== null && !isNullId(after));
  return moved ? selectChange(moved, reading) : ignored("branch_deleted");
}

function selectChange(
  { ref, before, after }: RefChange,
  { repository, pusher }: Extract<Reading, { kind: "push" }>,
): Selection {
  if (!isMainRef(ref) || !isCommitId(after)) {
    const detail = "The commit pushed is not 40 or 64 lower-case hexadecimal digits.";
    return { kind: "unusable", field: "/after", detail };
  }
  if (before !== null && !isNullId(before) && !isCommitId(before)) {
    const detail = "The commit before the push is not 40 or 64 lower-case hexadecimal digits.";
    return { kind: "unusable", field: "/before", detail };
  }
  return {
    kind: "push",
    change: { ref, before: isCommitId(before) ? before : null, commit: after },
    repository: repository !== null && isPlainName(repository) ? repository : null,
    pusher: printable(pusher?.slice(0, 10 * longestPusher) ?? "", longestPusher).trim() || null,
  };
}

/** A name that is harmless in a log and on a page; any other is not worth keeping, since nothing depends on it. */
function isPlainName(name: string): boolean {
  return /^[\w.~+-]+(?:\/[\w.~+-]+)*$/.test(name) && name.length <= longestName;
}

function ignored(reason: IgnoreReason): Selection {
  return { kind: "ignored", reason };
}

function isTagOnly(changes: readonly RefChange[]): boolean {
  return changes.length > 0 && changes.every(({ ref }) => ref.startsWith("refs/tags/"));
}

/** `refs/heads/main` sorts before `refs/heads/master`. */
function byRef(one: RefChange, other: RefChange): number {
  return one.ref < other.ref ? -1 : Number(one.ref > other.ref);
}
