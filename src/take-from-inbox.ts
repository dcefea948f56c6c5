import { listDeployments, pruneHistory } from "./deployments/history.ts";
import { recordPush } from "./deployments/record.ts";
import type { Offer } from "./inbox/offer.ts";
import { type InboxCursor, type Taking, takePushes } from "./inbox/take-pushes.ts";
import { createLogThrottle } from "./platform/log-throttle.ts";
import type { Store } from "./platform/sqlite/store.ts";
import { writeProbe } from "./platform/sqlite/write-probe.ts";
import type { Project, Shared } from "./projects/project.ts";
import type { ProjectRegistry } from "./projects/registry.ts";
import type { Push, PushRecord } from "./receiver/push.ts";

/** After so many pushes of a project its history is pruned: nothing may be deployed, and so be pruned after, for long. */
const pushesPerPruning = 50;
const refusalsPerMinute = 10;

/**
 * Takes pushes from the inbox of `receive`, and records each as a deployment of its project. A push for a project that is
 * not there, or for a branch or repository that it does not deploy, is refused: `receive` checks that too, but it may be in
 * the hands of an attacker.
 */
export function takeFromInbox(shared: Shared, projects: ProjectRegistry): Taking {
  const { machine, store, log, stopping } = shared;

  const recorded = new Map<string, number>();
  const mayLog = createLogThrottle<"refused">(refusalsPerMinute, 60_000, (_, count) =>
    log.error({ event: "inbox.refused", count }, `${count} more pushes in the inbox were refused`),
  );

  async function record({ project: name, push }: Offer, cursor: InboxCursor): Promise<PushRecord | null> {
    const mark = () => writeCursor(store, cursor);
    const markAndPrune = () => {
      mark();
      const count = (recorded.get(name) ?? 0) + 1;
      recorded.set(name, count % pushesPerPruning);
      if (count === pushesPerPruning) pruneHistory(store.of(name));
    };
    // The two processes read the projects at different moments.
    if (!isExpected(name, push)) projects.refresh();
    if (isExpected(name, push)) {
      const project = projects.find(name);
      if (project) return await project.accept(push, markAndPrune);
      return await store.batch(() => {
        markAndPrune();
        return recordPush(store.of(name), push);
      });
    }
    await store.batch(mark);
    const text = "A push in the inbox is not for a project and branch of this machine";
    if (mayLog("refused")) log.error({ event: "inbox.refused", project: name }, text);
    return null;
  }

  /** What came for a project whose settings are broken or gone waits until there are settings again. */
  function isExpected(name: string, push: Push): boolean {
    if (projects.faults().has(name)) return true;
    const project = projects.find(name);
    return project ? isWanted(project, push) : listDeployments(store.of(name), { limit: 1 }).length > 0;
  }

  return takePushes({
    socketPath: machine.inboxSocket,
    readCursor: () => readCursor(store),
    skip: (cursor) => store.transaction(() => writeCursor(store, cursor)),
    sync: () => writeProbe(store),
    record,
    async dryRun({ project: name, push }) {
      const project = projects.find(name);
      return project?.isServed && isWanted(project, push) ? await project.dryRun(push) : null;
    },
    onSecretUse({ project, slot, host, deliveryId }) {
      projects.find(project)?.secretUses.note(slot, host, deliveryId);
    },
    ...{ log, signal: stopping },
  });
}

function isWanted({ settings, refs }: Project, { ref, repository }: Push): boolean {
  const wanted = settings.repository?.toLowerCase();
  return refs.includes(ref) && (wanted === undefined || repository?.toLowerCase() === wanted);
}

function readCursor(store: Store): InboxCursor | null {
  const row = store.get("SELECT id, last_seq FROM inboxes");
  return row ? { inbox: String(row.id), seq: Number(row.last_seq) } : null;
}

/** There is one inbox: another id means that it was made again. Call it in a transaction. */
function writeCursor(store: Store, { inbox, seq }: InboxCursor): void {
  store.run("DELETE FROM inboxes WHERE id <> ?", inbox);
  const sql =
    "INSERT INTO inboxes VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET last_seq = max(last_seq, excluded.last_seq)";
  store.run(sql, inbox, seq);
}
