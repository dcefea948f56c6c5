import type { DeploymentJson, HoldJson, PauseJson, ReportedJson } from "#calls/shapes";
import { formatDuration } from "#config/values";
import { branchOf, shortCommit } from "#deployments/push";
import { type Colour, fit, harmless, type Terminal, wrapText } from "#platform/terminal";
import { requestsText } from "#site-requests";

const stateColours: Readonly<Record<DeploymentJson["state"], Colour>> = {
  queued: "dim",
  running: "yellow",
  succeeded: "green",
  failed: "red",
  timed_out: "red",
  cancelled: "yellow",
  superseded: "dim",
  interrupted: "yellow",
  skipped: "dim",
};

/** The state of a deployment as a person reads it, in its colour if `paint` is given. */
export function stateText(
  { state }: Pick<DeploymentJson, "state">,
  paint: Terminal["paint"] = (_colour, text) => text,
): string {
  return paint(stateColours[state], state.replace("_", " "));
}

/** How a deployment ended, and the reason if it did not succeed. */
export function endingLines(deployment: DeploymentJson, { paint, columns }: Terminal): readonly string[] {
  const { id, state, ref, durationMs, problem, skipReason } = deployment;
  const took = durationMs === null ? "" : ` after ${formatDuration(durationMs)}`;
  const what = state === "succeeded" ? `: ${branchOf(ref)} is at ${commitText(deployment)}` : "";
  const was = ["cancelled", "superseded", "skipped"].includes(state) ? "was " : "";
  const first = `Deployment ${id} ${was}${stateText(deployment, paint)}${byWhat(deployment)}${took}${what}.`;
  const reasons = (problem?.detail ?? skipReason)?.split("\n") ?? [];
  const requests = requestLines(deployment).flatMap((line) => wrapText(line, columns));
  return [first, ...requests, ...reasons.flatMap((line) => wrapText(harmless(line), columns))];
}

/** That a deployment waits, and why. The host, or git, may have written the reason. */
export function waitingLines({ id, waitReason }: DeploymentJson, { columns }: Terminal): readonly string[] {
  const why = waitReason === null ? " for its turn." : `: ${harmless(waitReason)}`;
  return wrapText(`Deployment ${id} waits${why}`, columns);
}

/** What the roll-out counted at the proxy, a line for each host. The deploy script may have written it. */
export function requestLines({ requests }: DeploymentJson): readonly string[] {
  return (requests ?? []).map((site) => harmless(requestsText(site)));
}

function byWhat({ state, supersededBy, cancelledBy }: DeploymentJson): string {
  if (supersededBy !== null) return ` by deployment ${supersededBy}`;
  return state === "cancelled" && cancelledBy !== null ? ` by ${reportedText(cancelledBy)}` : "";
}

/** The commit that is live when a deployment succeeds, and the requested one if that is another. */
export function commitText({ commit, checkedOutCommit }: DeploymentJson): string {
  if (checkedOutCommit === null || checkedOutCommit === commit) return shortCommit(commit);
  return `${shortCommit(checkedOutCommit)} (instead of ${shortCommit(commit)})`;
}

const mostNameColumns = 20;

/**
 * What is deployed and who is behind it, in one line: subject, author, who pushed or requested it. The subject is cut
 * before the names are. Empty if none of it is known.
 *
 * @param columns how many the line may take at most
 */
export function originText(deployment: DeploymentJson, columns: number): string {
  const names = fit(namesIn(deployment), Math.floor(columns * 0.8));
  // Two spaces end the subject, so it has none.
  const subject = deployment.subject?.replaceAll(/\s+/g, " ") ?? "";
  const gap = subject === "" || names === "" ? "" : "  ";
  return fit(subject, columns - [...names].length - gap.length) + gap + names;
}

function namesIn({ trigger, state, author, pusher, requestedBy, cancelledBy }: DeploymentJson): string {
  const isCancelled = state === "cancelled" && cancelledBy !== null;
  const verb = trigger === "rollback" ? "rolled back" : "deployed";
  return [
    author && shortName(author),
    pusher && `pushed by ${shortName(pusher.name)}`,
    requestedBy && `${verb} by ${reportedText(requestedBy)}`,
    isCancelled && `cancelled by ${reportedText(cancelledBy)}`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** A person by the name that a command reported. */
function reportedText({ name }: ReportedJson): string {
  return `${shortName(name)} (reported)`;
}

/** Commas separate the names, so none has one: else an author's could pass for that of the person who pushed. */
function shortName(name: string): string {
  return fit(name.replaceAll(/[\s,]+/g, " "), mostNameColumns);
}

/** Since when a queue is paused, by whom and why. */
export function pauseText(pause: PauseJson): string {
  return `paused since ${heldText(pause)}`;
}

/** Since when a queue, or that of all projects, is held; by whom and why. */
export function heldText({ since: heldAt, by, reason }: PauseJson | HoldJson): string {
  const who = by === null ? "" : `, by ${reportedText(by)}`;
  return `${localTime(heldAt)}${who}${reason === null ? "" : `: ${harmless(reason)}`}`;
}

/** A moment in the reader's time zone, to the minute: 2026-11-21 10:29. */
export function localTime(iso: string): string {
  const date = new Date(iso);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** How long ago a moment was: 4 min, 2 h 5 min, 9 days. */
export function since(iso: string): string {
  const ms = Math.max(0, Date.now() - Date.parse(iso));
  const hourMs = 3_600_000;
  if (ms >= 48 * hourMs) return `${Math.floor(ms / (24 * hourMs))} days`;
  return formatDuration(ms < 60_000 ? Math.floor(ms / 1_000) * 1_000 : ms).replace(/^0 ms$/, "0 s");
}
