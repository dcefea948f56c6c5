import { closeSync, constants, fstatSync, openSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { replaceFile } from "../../platform/replace-file.ts";
import { readSiteRequests, type SiteRequests } from "../../site-requests.ts";
import { inheritedOwner } from "../state.ts";
import type { Report, RolloutEvent } from "./report.ts";

/** What a roll-out reports to the service whose deployment it is part of. */
export interface DeploymentReport {
  /** When the last of its services got the requests of its users; null if none did, or the old version serves again. */
  readonly liveAtMs: number | null;
  /** Null if they were not counted. */
  readonly requests: readonly SiteRequests[] | null;
}

const nothing: DeploymentReport = { liveAtMs: null, requests: null };
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
  let known = nothing;
  return (event) => {
    report(event);
    known = withEvent(known, event);
    if (event.event === "finished" || event.event === "failed") write(reportPath(statePath, id), known);
  };
}

function withEvent(known: DeploymentReport, event: RolloutEvent): DeploymentReport {
  if (event.event === "step" && event.step === "switch") return { ...known, liveAtMs: Date.now() };
  if (event.event === "requests") return { ...known, requests: event.sites };
  return event.event === "failed" ? { ...known, liveAtMs: null } : known;
}

/** The deployment counts, not what is known about it. */
function write(path: string, known: DeploymentReport): void {
  try {
    replaceFile(path, JSON.stringify(known), { mode: 0o644, owner: inheritedOwner(dirname(path)) });
  } catch {
    // A full disk: nothing is recorded.
  }
}

/** Takes the report that the roll-out of a deployment has left. The script's user may have written anything there. */
export function takeDeploymentReport(statePath: string, deploymentId: number): DeploymentReport {
  const path = reportPath(statePath, deploymentId);
  try {
    const { liveAtMs, requests }: Record<keyof DeploymentReport, unknown> = JSON.parse(readShortFile(path));
    rmSync(path, { force: true });
    return {
      liveAtMs: Number.isSafeInteger(liveAtMs) ? Number(liveAtMs) : null,
      requests: readSiteRequests(requests),
    };
  } catch {
    return nothing;
  }
}

function readShortFile(path: string): string {
  // Without O_NONBLOCK, a named pipe would hold up the whole service.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.size > longestBytes) throw new Error(`${path} is not a report`);
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}
