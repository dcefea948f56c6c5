import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import type { Deployment, Ending } from "../../src/deployments/deployment.ts";
import type { CommitId, Push } from "../../src/deployments/push.ts";
import { recordPush, settle } from "../../src/deployments/record.ts";
import { claimNext, openDeployments } from "../../src/deployments/store.ts";
import type { OpenStore, Store } from "../../src/platform/sqlite.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";

/** A real database in a directory of its own. */
export function temporaryStore(scope: Scope): Store {
  const store = openDefault(temporaryDirectory(scope));
  scope.after(() => store.close());
  return store;
}

/** The database in `directory`, as the only project sees it. */
export function openDefault(directory: string): OpenStore {
  const store = openDeployments(directory);
  return { ...store, ...store.of("default") };
}

/** A commit id that stands for `name`: the same name gives the same id. */
export function commitOf(name: string): CommitId {
  return createHash("sha1").update(name).digest("hex") as CommitId;
}

/** A verified push as the receiver returns it; each is a new delivery unless `digest` is given. */
export function pushOf(fields: Partial<Push> = {}): Push {
  return {
    host: "github",
    ref: "refs/heads/main",
    before: null,
    commit: commitOf(randomBytes(8).toString("hex")),
    repository: "octo/app",
    digest: randomBytes(32).toString("hex"),
    deliveryId: null,
    pusher: null,
    ...fields,
  };
}

/** Records a push as the service does. */
export function record(store: Store, push: Push) {
  return store.transaction(() => recordPush(store, push));
}

/** How many rows a table has. */
export function countOf(store: Store, table: "deployments" | "deliveries"): number {
  return Number(store.get(`SELECT count(*) AS n FROM ${table}`)?.n);
}

/** Runs the next deployment, with this result. */
export function run(store: Store, state: Ending["state"]): Deployment {
  return store.transaction(() => {
    const claimed = claimNext(store);
    assert.ok(claimed, "something is queued");
    settle(store, claimed, { state, exitCode: null, problem: null });
    return claimed;
  });
}
