import assert from "node:assert/strict";
import fc from "fast-check";
import type { Checks } from "../../src/deployments/checks.ts";
import type { Deployment, Ending } from "../../src/deployments/deployment.ts";
import type { CommitId, Push } from "../../src/deployments/push.ts";
import { recordRequest, settle } from "../../src/deployments/record.ts";
import { createResolver, type Decision, type ResolverOptions } from "../../src/deployments/resolve.ts";
import { claimNext, findDeployment, putBack } from "../../src/deployments/store.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { git, makeProject } from "./repository.ts";
import { pushOf, record, temporaryStore } from "./store.ts";
import type { Scope } from "./temporary.ts";

const ref = "refs/heads/main";

/** A checkout whose remote is asked once in a look. */
export function checkoutOf(repoPath: string, searchPath?: string) {
  const PATH = [searchPath, process.env.PATH].filter(Boolean).join(":");
  const redactor = () => ({ text: (text: string) => text });
  return { repoPath, environment: { PATH, DEPLOY_RETRY_PAUSES: "0" }, user: null, redactor };
}

/** Does what was decided about a claimed deployment, whose script would end so. Call it in a transaction. */
export function carryOut(
  store: Store,
  claimed: Deployment,
  decision: Decision,
  state: Ending["state"],
): void {
  if (decision.kind === "deploy") settle(store, claimed, { state, exitCode: null, problem: null });
  if (decision.kind === "refused")
    settle(store, claimed, { state: "failed", exitCode: null, problem: decision.problem });
  if (decision.kind === "skipped")
    settle(store, claimed, { state: "skipped", exitCode: null, problem: null, skipReason: decision.reason });
  if (decision.kind === "wait") putBack(store, claimed, decision.reason);
}

/** An event of a history, by how often it comes among the others. Each of its fields has its own arbitrary. */
export function happens(
  weight: number,
  kind: string,
  fields: Readonly<Record<string, fc.Arbitrary<unknown>>> = {},
) {
  return { weight, arbitrary: fc.record({ kind: fc.constant(kind), ...fields }) };
}

/** True once in `count` times. */
export function onceIn(count: number): fc.Arbitrary<boolean> {
  return fc.nat(count - 1).map((one) => one === 0);
}

/** Lives through each of many histories, with a place of its own. */
export async function liveThrough<Happening>(
  happening: fc.Arbitrary<Happening>,
  { histories, known }: { readonly histories: number; readonly known: readonly (readonly Happening[])[] },
  live: (scope: Scope, history: readonly Happening[]) => Promise<unknown>,
): Promise<void> {
  const some = fc.array(happening, { minLength: 4, maxLength: 25, size: "max" });
  const property = fc.asyncProperty(some, async (history) => {
    const cleanups: (() => void)[] = [];
    try {
      await live({ after: (cleanup) => void cleanups.push(cleanup as () => void) } as Scope, history);
    } finally {
      for (const cleanup of cleanups.reverse()) cleanup();
    }
  });
  await fc.assert(property, { numRuns: histories, examples: known.map((history) => [[...history]]) });
}

/** The settings as they stay. */
interface ResolvingOptions
  extends Partial<Pick<ResolverOptions, "checks" | "patienceMs" | "maxLookMs" | "clock">> {
  readonly searchPath?: string;
  readonly paths?: readonly string[];
  readonly confirmMs?: number;
  readonly checkSigned?: ReturnType<ResolverOptions["checkSigned"]>;
}

const noChecks: Checks = { judge: async () => null, givenUp: () => [] };

/** A resolver with a real remote and a real database, without scripts: each deployment ends as the test says. */
export function makeResolving(
  scope: Scope,
  { searchPath, paths = [], confirmMs = 50, checkSigned = null, ...options }: ResolvingOptions = {},
) {
  const project = makeProject(scope);
  const store = temporaryStore(scope);
  const { signal } = new AbortController();
  const checkout = () => checkoutOf(project.repoPath, searchPath);
  const settings = { paths: () => paths, confirmMs: () => confirmMs, checkSigned: () => checkSigned };
  const resolver = createResolver({ store, checkout, checks: noChecks, ...settings, ...options });

  async function next(state: "succeeded" | "failed" | "cancelled" = "succeeded"): Promise<Decision> {
    const claimed = store.transaction(() => claimNext(store));
    assert.ok(claimed, "something is queued");
    const decision = await resolver.resolve(claimed, signal);
    store.transaction(() => carryOut(store, claimed, decision, state));
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
