import { join } from "node:path";
import * as v from "valibot";
import { type MissedDelivery, missedDelivery, type secretUse } from "#calls/shapes";
import { isProjectName } from "#config/server";
import { listDeployments, pruneHistory } from "#deployments/history";
import {
  type CommitId,
  deliveryIdPattern,
  type FrontAnswers,
  hostPattern,
  isCommitId,
  isPlainRepository,
  type JsonObject,
  mainRefs,
  mostOffered,
  type Push,
  type PushRecord,
  spooledIdOf,
  spoolName,
  type Would,
} from "#deployments/push";
import { recordPush } from "#deployments/record";
import { findDeployment } from "#deployments/store";
import { createLogThrottle, pause } from "#platform/async";
import { attempt, replaceFile } from "#platform/files";
import { listForeignDirectory, readForeignFile } from "#platform/foreign-files";
import type { Project, ProjectRegistry, Shared } from "./project.ts";

const savedMissed = v.fallback(v.array(missedDelivery), []);

export type Inbox = ReturnType<typeof takePushes>;

/** A push that is recorded waits no longer than this if `front` is gone. */
const lookEveryMs = 1_000;
/** `front` calls every few seconds, whether it has something or not. */
const longestSilenceMs = 10_000;
const mostListed = 2_000;
const longestPushBytes = 16 * 1024;
const leastUsesMs = 500;
/** A dry run can start programs. Of a `front` that asks for more at once, the others get no answer. */
const mostDryRuns = 4;
/** Ids whose files are gone are kept for long after that: a power cut may bring a file back. */
const mostIds = 20_000;
const linesPerMinute = 10;
/** Fewer than a pruning deletes: in a flood, the history must not grow faster than it is pruned. */
const mostUnpruned = 200;

/**
 * Takes pushes from the spool of `front`, and records each once, as a deployment of its project. `front` may be in the hands
 * of an attacker: nothing in the spool is followed or waited for, its files are bounded in number and size, and each push is
 * rebuilt from fields that were checked. One for a project that is not there, or for a branch or repository that it does not
 * deploy, is refused.
 *
 * @param isSplit whether `front` is another process
 */
export function takePushes(shared: Shared, projects: ProjectRegistry, isSplit: boolean) {
  const { service, store, log, stopping } = shared;
  const directory = service.spoolPath;
  /** The projects whose history has grown since it was pruned, and by how much together. */
  const grown = new Set<string>();
  let grownBy = 0;
  const missedFile = join(service.statePath, "missed.json");
  const saved = attempt(() => readForeignFile(missedFile, { mostBytes: 1024 ** 2 }).toString(), "");
  let missed = v.parse(
    savedMissed,
    attempt(() => JSON.parse(saved) as unknown, null),
  );
  let failure: string | null = null;
  let heardAtMs: number | null = null;
  let usesNotedAtMs = Number.NEGATIVE_INFINITY;
  let dryRuns = 0;
  let restsUntilMs = Number.NEGATIVE_INFINITY;
  const mayLog = createLogThrottle<string>(linesPerMinute, 60_000, (event, count) =>
    log.warn({ event: "spool.more", kind: event, count }, `${count} more of ${event}`),
  );

  /** Looks for pushes that nobody offers. */
  async function look(): Promise<void> {
    const ids = listForeignDirectory(directory, mostListed)
      .map(spooledIdOf)
      .filter((id) => id !== null);
    while (ids.length > 0 && !stopping.aborted) {
      take(ids.splice(0, mostOffered));
      await pause(Math.max(0, restsUntilMs - performance.now()), stopping);
    }
    prune();
    failure = null;
  }

  /** One of each kind and project, so strangers cannot fill the disk; those of other projects go. */
  function keepMissed(more: readonly MissedDelivery[]): void {
    if (more.length === 0) return;
    const all = [...missed, ...more].filter(({ project }) => projects.find(project) !== null);
    missed = [...new Map(all.map((one) => [one.project + one.kind, one])).values()];
    attempt(() => replaceFile(missedFile, JSON.stringify(missed), { mode: 0o600, owner: null }), null);
  }

  async function lookAgain(): Promise<void> {
    while (!stopping.aborted) {
      await look().catch(reportFailure);
      await pause(lookEveryMs, stopping);
    }
  }

  /** Only the first failure of a row is logged. Before `front` has called, the directory may not be there. */
  function reportFailure(error: unknown): void {
    const { code, message } = error as NodeJS.ErrnoException;
    if (heardAtMs === null && code === "ENOENT") return;
    if (failure === null && mayLog("spool.failed"))
      log.warn({ event: "spool.failed", err: error }, `Pushes cannot be taken from ${directory}`);
    failure = code ?? message;
  }

  /**
   * Records pushes, all in one transaction, and starts what may start. After many of another process there is as long a rest:
   * a flood leaves half of the time.
   */
  function take(ids: readonly string[]): FrontAnswers["pushes"] {
    const startMs = performance.now();
    const answers: Answered[] = [];
    const offers: { readonly id: string; readonly offer: Offer | null }[] = [];
    try {
      for (const id of ids) {
        const known = store.get("SELECT record FROM spooled WHERE id = ?", id);
        const offer = known ? undefined : read(id);
        if (known) answers.push({ id, record: JSON.parse(String(known.record)) as PushRecord | null });
        else if (offer !== undefined) offers.push({ id, offer });
      }
      // The two processes read the projects at different moments.
      if (offers.some(({ offer }) => offer !== null && !isExpected(offer))) projects.refresh();
      const names = new Set(offers.flatMap(({ offer }) => (offer ? [offer.project] : [])));
      answers.push(...store.transaction(() => offers.map(({ id, offer }) => record(id, offer))));
      for (const name of names) {
        projects.find(name)?.queue.wake();
        grown.add(name);
      }
      grownBy += offers.length;
      if (grownBy >= mostUnpruned) prune();
    } catch (error) {
      const text = "Pushes in the spool could not be recorded; they are tried again";
      if (mayLog("spool.unrecorded")) log.error({ event: "spool.unrecorded", err: error }, text);
    }
    const tookMs = performance.now() - startMs;
    // Squared: a few pushes rest for almost nothing, and only a full offer for as long as it took.
    if (isSplit) restsUntilMs = performance.now() + tookMs * (ids.length / mostOffered) ** 2;
    return answers.map(({ id, record: one }) => ({ id, record: one && atPresent(one) }));
  }

  /** @returns null if it is no push that is deployed here; undefined if there is none, or none that can be read now */
  function read(id: string): Offer | null | undefined {
    try {
      const limits = { mostBytes: longestPushBytes, followsLinks: false };
      const bytes = readForeignFile(join(directory, spoolName(id)), limits);
      return offerIn(JSON.parse(bytes.toString()));
    } catch (error) {
      const { code = "" } = error as NodeJS.ErrnoException;
      if (error instanceof SyntaxError || hopeless.includes(code)) return null;
      // Another `front` may have deleted it.
      if (code !== "ENOENT" && mayLog("spool.unrecorded"))
        log.error({ event: "spool.unrecorded", err: error }, "A push in the spool could not be read");
      return undefined;
    }
  }

  /** Records a push, and in the same transaction that this was done. */
  function record(id: string, offer: Offer | null): Answered {
    const made = offer && isExpected(offer) ? recordOffer(offer) : null;
    store.run("INSERT INTO spooled (id, record) VALUES (?, ?)", id, JSON.stringify(made));
    const refused = "A file in the spool is no push, or is for a project or branch that is not deployed here";
    if (made === null && mayLog("spool.refused"))
      log.error({ event: "spool.refused", project: offer?.project }, refused);
    return { id, record: made };
  }

  function recordOffer({ project: name, push }: Offer): PushRecord {
    const made = recordPush(store.of(name), push);
    // A delivery that comes again decides nothing, but its branch may have moved.
    if (made.kind === "duplicate") projects.find(name)?.catchUp.look(push.ref);
    return made;
  }

  /** What was accepted may be running by now. */
  function atPresent(made: PushRecord): PushRecord {
    const { deployment, kind } = made;
    const state = kind === "accepted" && findDeployment(store, deployment.id)?.state;
    return state ? { ...made, deployment: { ...deployment, state } } : made;
  }

  /** What came for a project whose settings are broken or gone waits until there are settings again. */
  function isExpected({ project: name, push }: Offer): boolean {
    if (projects.faults().has(name)) return true;
    const project = projects.find(name);
    return project ? isWanted(project, push) : listDeployments(store.of(name), { limit: 1 }).length > 0;
  }

  /** Prunes histories, which else only the end of a deployment does, and ids. Not at each push: none need wait for it. */
  function prune(): void {
    if (grown.size > 0)
      store.transaction(() => {
        for (const name of grown) pruneHistory(store.of(name));
      });
    grown.clear();
    grownBy = 0;
    const { n } = store.get("SELECT max(seq) - min(seq) AS n FROM spooled") ?? {};
    if (Number(n) < mostIds * 2) return;
    const sql = "DELETE FROM spooled WHERE seq < (SELECT max(seq) FROM spooled) - ?";
    store.transaction(() => store.run(sql, mostIds));
  }

  const ended = lookAgain();
  return {
    /** Whether pushes come in: when `front` called last, and why the spool could not be read, or that `front` is silent. */
    report() {
      const isSilent = heardAtMs !== null && Date.now() - heardAtMs > longestSilenceMs;
      return { reachedAtMs: heardAtMs, failure: failure ?? (isSilent ? "front is silent" : null) };
    },
    /** Resolves when the service stops and nothing is under way. Never rejects. */
    ended,
    /** Records pushes that `front` offers; null if it has to ask again. */
    record(ids: readonly string[]): FrontAnswers["pushes"] | null {
      heardAtMs = Date.now();
      if (performance.now() < restsUntilMs) return null;
      return ids.length === 0 ? [] : take([...new Set(ids)]);
    },
    async dryRun(body: JsonObject): Promise<{ readonly would: Would | null }> {
      heardAtMs = Date.now();
      const offer = offerIn(body);
      const project = offer && projects.find(offer.project);
      const isKnown = offer && project?.isServed && isWanted(project, offer.push);
      if (!isKnown || dryRuns >= mostDryRuns) return { would: null };
      dryRuns += 1;
      try {
        return { would: await project.dryRun(offer.push) };
      } finally {
        dryRuns -= 1;
      }
    },
    /** Notes which secrets have signed deliveries, and what was missed. @returns false if it has to be said again */
    noteUses(noted: readonly (v.InferOutput<typeof secretUse> | MissedDelivery)[]): boolean {
      heardAtMs = Date.now();
      if (performance.now() - usesNotedAtMs < leastUsesMs) return false;
      // A new secret is often used before it was read here, and its use would count for the old one.
      projects.refresh();
      const uses = noted.filter((one) => "slot" in one);
      keepMissed(noted.filter((one) => "kind" in one));
      const last = new Map(uses.map((use) => [`${use.project} ${use.slot}`, use]));
      store.transaction(() => {
        for (const use of last.values()) projects.find(use.project)?.noteSecretUse(use.slot, use);
      });
      usesNotedAtMs = performance.now();
      for (const name of new Set(uses.map(({ project }) => project))) projects.find(name)?.lookSoon();
      return true;
    },
    /** The last deliveries of a project that were refused or ignored, without those that a push followed. */
    missedOf({ name, store: own }: Project): readonly MissedDelivery[] {
      const sql =
        "SELECT max(created_at_ms) AS atMs FROM deployments WHERE project = $project AND trigger = 'push'";
      const pushedAtMs = Number(own.get(sql)?.atMs ?? 0);
      return missed.filter(({ project, at }) => project === name && Date.parse(at) > pushedAtMs);
    },
  };
}

function isWanted({ settings, refs }: Project, { ref, repository }: Push): boolean {
  const wanted = settings.repository?.toLowerCase();
  return refs.includes(ref) && (wanted === undefined || repository?.toLowerCase() === wanted);
}

/** What no later look could read either. */
const hopeless = ["EISDIR", "EINVAL", "EFBIG", "EPERM", "ELOOP", "ENOTDIR"];

type Answered = FrontAnswers["pushes"][number];

const matching = (pattern: RegExp) => v.pipe(v.string(), v.regex(pattern));
const commitId = v.custom<CommitId>(isCommitId);
/** What is only for people need not be there. */
const orNull = <Of extends v.GenericSchema>(schema: Of) => v.fallback(v.nullable(schema), null);

/** A push is rebuilt from fields that are checked, one by one, and nothing else of it is used. */
const offerShape = v.object({
  project: v.pipe(v.string(), v.check(isProjectName)),
  push: v.object({
    host: matching(hostPattern),
    ref: v.picklist(mainRefs),
    before: v.nullable(commitId),
    commit: commitId,
    digest: matching(/^[0-9a-f]{64}$/),
    repository: orNull(v.custom<string>(isPlainRepository)),
    // Printable, and bounded.
    pusher: orNull(matching(/^[^\p{C}\u2028\u2029]{1,100}$/u)),
    deliveryId: orNull(matching(deliveryIdPattern)),
  }),
});

type Offer = v.InferOutput<typeof offerShape>;

function offerIn(value: unknown): Offer | null {
  const { success, output } = v.safeParse(offerShape, value);
  return success ? output : null;
}
