import { dirname, join } from "node:path";
import * as v from "valibot";
import { replaceFile } from "#platform/files";
import { readForeignFile, removeForeignFile } from "#platform/foreign-files";
import { readSiteRequests, type SiteRequests } from "#site-requests";
import { inheritedOwner } from "./lock.ts";
import type { Report, RolloutEvent } from "./report.ts";

/** What a roll-out reports to the service whose deployment it is part of. */
export interface DeploymentReport {
  /** When the last of its services got the requests of its users; null if none did, or the old version serves again. */
  readonly liveAtMs: number | null;
  /** Null if they were not counted. */
  readonly requests: readonly SiteRequests[] | null;
  /** Whether a new version has the requests and is only watched. */
  readonly isGuarding: boolean;
  /** Whether the guard, or a person while it watched, has taken the new version back. */
  readonly isTakenBack: boolean;
  /** What serves now, of each service; null if that is not known, or they are too many to keep. */
  readonly images: readonly v.InferOutput<typeof liveImage>[] | null;
  /** What the guard said of each service that it watched; null as for `images`. */
  readonly guard: readonly v.InferOutput<typeof guarded>[] | null;
}

const shortText = v.pipe(v.string(), v.regex(/^[\x20-\x7e]{1,255}$/));
const liveImage = v.strictObject({ service: shortText, image: shortText, id: shortText });
const guarded = v.strictObject({ service: shortText, verdict: shortText });
/** They are kept for the receipt of a deployment. */
const mostServices = 50;
const liveImages = v.pipe(v.array(liveImage), v.maxLength(mostServices));
const verdicts = v.pipe(v.array(guarded), v.maxLength(mostServices));

/** That of a deployment without a roll-out. */
export const noReport: DeploymentReport = {
  liveAtMs: null,
  requests: null,
  isGuarding: false,
  isTakenBack: false,
  images: null,
  guard: null,
};
const longestBytes = 64 * 1024;

function reportPath(statePath: string, deploymentId: number): string {
  return join(statePath, "rollout", `deployment-${deploymentId}.json`);
}

/**
 * Passes events on, and leaves the service a report of them.
 *
 * @param statePath STATE_PATH, as the deploy script has it
 * @param deploymentId DEPLOY_ID; without it there is no such service
 */
export function reportToService(report: Report, statePath: string, deploymentId: string | undefined): Report {
  const id = Number(deploymentId);
  if (!Number.isSafeInteger(id) || id < 1) return report;
  let known: DeploymentReport = { ...noReport, guard: [] };
  return (event) => {
    known = withEvent(known, event);
    // First: who reads the event may ask the service.
    if (isWritten(event)) write(reportPath(statePath, id), known);
    report(event);
  };
}

function withEvent(known: DeploymentReport, event: RolloutEvent): DeploymentReport {
  if (event.event === "step" && event.step === "switch") return { ...known, liveAtMs: Date.now() };
  if (event.event === "guarding") return { ...known, isGuarding: true };
  if (event.event === "step" && event.step === "guard") return { ...known, ...endOfGuard(known, event) };
  if (event.event === "version") return { ...known, images: kept(liveImages, event.images) };
  if (event.event === "requests") return { ...known, requests: event.sites };
  if (event.event !== "failed") return known;
  const isTakenBack = event.code === "version_worse" || event.code === "version_unwanted";
  return { ...known, liveAtMs: null, isTakenBack };
}

function endOfGuard(
  { guard }: DeploymentReport,
  { service, detail }: { service: string | null; detail: string },
) {
  const verdict = { service: service ?? "", verdict: detail };
  return { isGuarding: false, guard: guard && kept(verdicts, [...guard, verdict]) };
}

/** The value if it has the shape, else null: also the script's user may have written it. */
function kept<Schema extends v.GenericSchema>(schema: Schema, value: unknown): v.InferOutput<Schema> | null {
  const read = v.safeParse(schema, value);
  return read.success ? read.output : null;
}

/** At the switch the service already knows that the new version is live. */
function isWritten(event: RolloutEvent): boolean {
  if (event.event === "step") return event.step === "switch" || event.step === "guard";
  return ["guarding", "finished", "failed"].includes(event.event);
}

/** The deployment counts, not what is known about it. */
function write(path: string, known: DeploymentReport): void {
  try {
    replaceFile(path, JSON.stringify(known), { mode: 0o644, owner: inheritedOwner(dirname(path)) });
  } catch {
    // A full disk: nothing is recorded.
  }
}

/** Reads the report of the roll-out of a deployment so far. The script's user may have written anything there. */
export function readDeploymentReport(statePath: string, deploymentId: number): DeploymentReport {
  const path = reportPath(statePath, deploymentId);
  try {
    const report: Record<keyof DeploymentReport, unknown> = JSON.parse(
      readForeignFile(path, { mostBytes: longestBytes }).toString(),
    );
    const { liveAtMs, requests, isGuarding, isTakenBack } = report;
    return {
      liveAtMs: Number.isSafeInteger(liveAtMs) ? Number(liveAtMs) : null,
      requests: readSiteRequests(requests),
      isGuarding: isGuarding === true,
      isTakenBack: isTakenBack === true,
      images: kept(liveImages, report.images),
      guard: kept(verdicts, report.guard),
    };
  } catch {
    return noReport;
  }
}

/** Removes a report that is recorded. If it cannot be removed, it does no harm. */
export function removeDeploymentReport(statePath: string, deploymentId: number): void {
  try {
    removeForeignFile(reportPath(statePath, deploymentId));
  } catch {
    // The script's user has something else in the place of the directory, or there is none.
  }
}
