import type { Notify } from "../config/project.ts";
import type { Deployment } from "../deployments/deployment.ts";
import type { Message } from "./message.ts";
import { sendToTarget } from "./targets/send.ts";

/** Whether a target took the test message. */
export interface TestResult {
  /** The target by its kind and host: its URL is secret. */
  readonly target: string;
  /** null: it took it. */
  readonly fault: string | null;
}

/** Sends a test message to each target of a project, once. */
export async function sendTestMessages(
  { targets }: Notify,
  project: string,
  signal: AbortSignal,
): Promise<readonly TestResult[]> {
  const message = testMessage(project);
  return await Promise.all(
    targets.map(async (target) => {
      const outcome = await sendToTarget(target, message, signal);
      return { target: target.name, fault: outcome.kind === "delivered" ? null : outcome.fault };
    }),
  );
}

function testMessage(project: string): Message {
  const nobody = { pusher: null, requestedBy: null, cancelledBy: null, author: null, subject: null };
  const nothing = { before: null, checkedOutCommit: null, repository: null, host: null, deliveryId: null };
  const noResult = { supersededBy: null, exitCode: null, problem: null, skipReason: null, requests: null };
  const nowMs = Date.now();
  const deployment: Deployment = {
    ...{ ...nobody, ...nothing, ...noResult, id: 0, project, state: "succeeded", attempts: 1 },
    ...{ trigger: "manual", ref: "refs/heads/main", commit: "0".repeat(40) },
    ...{ createdAtMs: nowMs, startedAtMs: nowMs, liveAtMs: null, finishedAtMs: nowMs },
  };
  const report = { event: "test", deployment, isAfterFailure: false } as const;
  return { report, step: null, lastLines: [], link: null };
}
