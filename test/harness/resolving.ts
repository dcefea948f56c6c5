import assert from "node:assert/strict";
import { settle } from "../../src/deployments/execute.ts";
import type { CommitId, Push } from "../../src/deployments/push.ts";
import { recordRequest } from "../../src/deployments/queue.ts";
import { createResolver, type Decision, type ResolverOptions } from "../../src/deployments/resolve.ts";
import { claimNext, findDeployment, putBack, transition } from "../../src/deployments/store.ts";
import { git, makeProject } from "./repository.ts";
import { pushOf, record, temporaryStore } from "./store.ts";
import type { Scope } from "./temporary.ts";

const ref = "refs/heads/main";

/** A resolver with a real remote and a real database, without scripts: each deployment ends as the test says. */
export type Resolving = ReturnType<typeof makeResolving>;

export function makeResolving(
  scope: Scope,
  { searchPath, ...options }: Partial<ResolverOptions> & { readonly searchPath?: string } = {},
) {
  const project = makeProject(scope);
  const store = temporaryStore(scope);
  const PATH = [searchPath, process.env.PATH].filter(Boolean).join(":");
  const checkout = () => ({
    repoPath: project.repoPath,
    environment: { PATH, DEPLOY_RETRY_PAUSES: "0" },
    user: null,
    redactor: () => ({ text: (text: string) => text }),
  });
  const { signal } = new AbortController();
  const resolver = createResolver({ store, checkout, confirmMs: 50, ...options });

  async function next(state: "succeeded" | "failed" | "cancelled" = "succeeded"): Promise<Decision> {
    const claimed = store.transaction(() => claimNext(store));
    assert.ok(claimed, "something is queued");
    const decision = await resolver.resolve(claimed, signal);
    store.transaction(() => {
      const ended = { state, exitCode: null, problem: null };
      if (decision.kind === "deploy") settle(store, claimed, ended);
      if (decision.kind === "refused")
        settle(store, claimed, { state: "failed", exitCode: null, problem: decision.problem });
      if (decision.kind === "skipped") transition(store, claimed, "skipped", { skipReason: decision.reason });
      if (decision.kind === "wait") putBack(store, claimed, decision.reason);
    });
    return decision;
  }

  function deliver(commit: string, fields?: Partial<Push>): number {
    return record(store, pushOf({ commit: commit as CommitId, ...fields })).deployment.id;
  }

  async function deploys(state?: "succeeded" | "failed" | "cancelled"): Promise<string> {
    const decision = await next(state);
    assert.equal(decision.kind, "deploy", JSON.stringify(decision));
    return decision.kind === "deploy" ? decision.commit : "";
  }

  return {
    project,
    store,
    resolver,
    next,
    deliver,
    deploys,
    /** Pushes a commit, which is deployed with this result. @returns the commit */
    async deployNew(state?: "succeeded" | "failed" | "cancelled"): Promise<string> {
      const commit = project.commit();
      deliver(commit);
      assert.equal(await deploys(state), commit);
      return commit;
    },
    request: (trigger: "manual" | "rollback" | "catch-up" | "image", commit: string) =>
      store.transaction(() => recordRequest(store, { trigger, ref, commit })).id,
    /** Puts the branch at the remote where a force push would. */
    moveTo: (commit: string) => void git(project.remotePath, "update-ref", ref, commit),
    read(id: number) {
      const deployment = findDeployment(store, id);
      assert.ok(deployment);
      return deployment;
    },
  };
}
