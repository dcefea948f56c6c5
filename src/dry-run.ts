import { findRunning } from "./deployments/history.ts";
import { findPause } from "./deployments/pauses.ts";
import { type RecordedPush, recordPush, summary } from "./deployments/record.ts";
import type { Store } from "./platform/sqlite/store.ts";
import type { DeploymentSummary, Push, Would } from "./receiver/push.ts";
import { checkScript } from "./runner/check-script.ts";
import type { ProjectScript } from "./runner/known-secrets.ts";

/** Makes the function that answers a dry run: what recording the push would do, and whether its script could start. */
export function createDryRun(store: Store, script: () => ProjectScript): (push: Push) => Promise<Would> {
  return async (push) => {
    const { recorded, running } = recordAndUndo(store, push);
    if (recorded.kind === "duplicate") {
      return { duplicate: { deployment: recorded.deployment, detail: recorded.detail } };
    }
    if (recorded.deployment.state === "superseded") return { ignore: overtaken };
    const problem = await checkScript(script());
    if (problem) return { fail: problem };
    const { ref, commit } = recorded.deployment;
    if (findPause(store) !== null) return { deploy: { ref, commit, when: "resumed" } };
    return running
      ? { deploy: { ref, commit, when: "after", after: running } }
      : { deploy: { ref, commit, when: "now" } };
  };
}

const overtaken = {
  reason: "superseded",
  detail: "A newer push of this branch arrived before this one, so it would not be deployed.",
};

interface DryRun {
  readonly recorded: RecordedPush;
  /** What runs now, and would be waited for. */
  readonly running: DeploymentSummary | null;
}

/** Records `push` in a transaction and rolls that back, so the answer is exactly what would happen. */
function recordAndUndo(store: Store, push: Push): DryRun {
  const undo = new Error("The dry run is over.");
  const seen: DryRun[] = [];
  try {
    store.transaction(() => {
      const running = findRunning(store);
      seen.push({ recorded: recordPush(store, push), running: running && summary(running) });
      throw undo;
    });
  } catch (error) {
    if (error !== undo) throw error;
  }
  const [dryRun] = seen;
  if (!dryRun) throw undo;
  return dryRun;
}
