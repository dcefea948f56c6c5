import { rehearsePush } from "./deployments/rehearse.ts";
import type { Store } from "./deployments/store.ts";
import type { Would } from "./receiver/dry-run.ts";
import type { Push } from "./receiver/push.ts";
import { checkScript } from "./runner/check-script.ts";
import { childEnvironment, type EnvironmentOptions } from "./runner/environment.ts";

/** Makes what answers a dry run: what recording the push would come to, and whether its script could be started. */
export function createRehearsal(store: Store, script: EnvironmentOptions): (push: Push) => Promise<Would> {
  return async (push) => {
    const { recorded, running } = rehearsePush(store, push);
    if (recorded.kind === "duplicate") {
      return { duplicate: { deployment: recorded.deployment, detail: recorded.detail } };
    }
    if (recorded.deployment.state === "superseded") return { ignore: overtaken };
    const problem = await checkScript(script.repoPath, childEnvironment(script));
    if (problem) return { fail: problem };
    const { ref, commit } = recorded.deployment;
    return running
      ? { deploy: { ref, commit, when: "after", after: running } }
      : { deploy: { ref, commit, when: "now" } };
  };
}

const overtaken = {
  reason: "superseded",
  detail: "A newer push of this branch came before this one, so it would not be deployed.",
};
