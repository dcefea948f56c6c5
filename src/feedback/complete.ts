import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { findDeployment } from "../deployments/deployment.ts";
import type { WaitingReport } from "../deployments/outbox.ts";
import { listSteps } from "../deployments/steps.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { printable } from "../platform/terminal/printable.ts";
import { logFiles } from "../runner/log-file.ts";
import { isFailure, type Message } from "./message.ts";

export interface CompleteOptions {
  /** The project's view. */
  readonly store: Store;
  /** The directory of the project's logs. */
  readonly statePath: string;
  readonly pageUrl: URL | null;
}

const mostLines = 10;
const mostBytes = 16 * 1024;

/** Adds the step, the last lines and the link to a report, if the deployment was not run again since. */
export function completeReport(
  { store, statePath, pageUrl }: CompleteOptions,
  { report }: Pick<WaitingReport, "report">,
): Message {
  const { deployment } = report;
  const link = pageUrl && new URL(`/deployments/${deployment.id}`, pageUrl).href;
  const message = { report, step: null, lastLines: [], link };
  const isCurrent = findDeployment(store, deployment.id)?.attempts === deployment.attempts;
  if (!isFailure(message) || !isCurrent) return message;
  const steps = listSteps(store, deployment).filter(({ attempt }) => attempt === deployment.attempts);
  return { ...message, step: steps.at(-1)?.name ?? null, lastLines: readLastLines(statePath, deployment.id) };
}

/** What cannot be read is left out. The log is redacted. */
function readLastLines(statePath: string, id: number): readonly string[] {
  for (const path of logFiles(statePath, id).toReversed()) {
    const lines = tailOf(path)
      .split("\n")
      .filter((line) => line.trim() !== "");
    if (lines.length > 0) return lines.slice(-mostLines).map((line) => printable(line));
  }
  return [];
}

function tailOf(path: string): string {
  try {
    const file = openSync(path, "r");
    try {
      const { size } = fstatSync(file);
      const bytes = Buffer.alloc(Math.min(size, mostBytes));
      readSync(file, bytes, 0, bytes.length, size - bytes.length);
      // The first line may have lost its beginning.
      return size > mostBytes ? bytes.toString().replace(/^.*\n/, "") : bytes.toString();
    } finally {
      closeSync(file);
    }
  } catch {
    return "";
  }
}
