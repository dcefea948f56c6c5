import type { DeploymentJson, ReportedJson } from "../../control/deployment-json.ts";
import { columnsOf, fit } from "./columns.ts";
import { shortCommit } from "./words.ts";

const mostNameColumns = 20;
const leastSubjectColumns = 12;
const gap = "  ";

/** The commit that is live when a deployment succeeds, and the one that was asked for if that is another. */
export function commitText({ commit, checkedOutCommit }: DeploymentJson): string {
  if (checkedOutCommit === null || checkedOutCommit === commit) return shortCommit(commit);
  return `${shortCommit(checkedOutCommit)} (instead of ${shortCommit(commit)})`;
}

/**
 * What is deployed and who is behind it, in one line: subject, author, who pushed or asked for it. The subject is cut off
 * before the names are. Empty if nothing of it is known.
 *
 * @param columns how many the line may take at most
 */
export function originText(deployment: DeploymentJson, columns: number): string {
  const names = namesIn(deployment);
  // Two spaces end the subject, so it has none.
  const subject = deployment.subject?.replaceAll(/\s+/g, " ") ?? null;
  if (subject === null) return fit(names, columns);
  if (names === "") return fit(subject, columns);
  const known = fit(names, columns - columnsOf(fit(subject, leastSubjectColumns)) - gap.length);
  return `${fit(subject, columns - columnsOf(known) - gap.length)}${gap}${known}`;
}

/** A person by the name that a command reported. */
export function reportedText({ name }: ReportedJson): string {
  return `${short(name)} (reported)`;
}

function namesIn({ trigger, state, author, pusher, requestedBy, cancelledBy }: DeploymentJson): string {
  const isCancelled = state === "cancelled" && cancelledBy !== null;
  const verb = trigger === "rollback" ? "rolled back" : "deployed";
  return [
    author === null ? [] : short(author),
    pusher === null ? [] : `pushed by ${short(pusher.name)}`,
    requestedBy === null ? [] : `${verb} by ${reportedText(requestedBy)}`,
    isCancelled ? `cancelled by ${reportedText(cancelledBy)}` : [],
  ]
    .flat()
    .join(", ");
}

/** Commas divide the names, so none has one: else an author's could pass for that of who pushed. */
function short(name: string): string {
  return fit(name.replaceAll(/[\s,]+/g, " "), mostNameColumns);
}
