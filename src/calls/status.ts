import * as v from "valibot";
import { formatDuration } from "#config/duration";
import type { CatchUpReport } from "#deployments/catch-up";
import type { Deployment } from "#deployments/deployment";
import { findRunning, listLastOfBranches, listRunning, listWaiting } from "#deployments/history";
import type { Hold } from "#deployments/queue";
import { findPause, listSteps, type SecretUse } from "#deployments/store";
import type { Store } from "#platform/sqlite";
import { readVersion } from "#version";
import {
  call,
  findContext,
  ofProjectOrAll,
  type ProjectContext,
  personText,
  refuse,
  type ServerContext,
  takes,
} from "./call.ts";
import { metricsText } from "./metrics.ts";
import { branchesOf, listProjects } from "./projects.ts";
import * as shapes from "./shapes.ts";
import {
  deploymentJson,
  type HoldEvent,
  holdJson,
  instant,
  instantOrNull,
  pauseJson,
  type SecretJson,
  type SecretsJson,
  type StatusJson,
  stepJson,
} from "./shapes.ts";

/** The calls about the service. */
export const serverCalls = {
  status: call({
    does: "What runs and waits, and how the service is: of a project, or of all",
    ...{ method: "GET", path: "/status", right: "viewer", takes: ofProjectOrAll },
    gives: v.union([shapes.status, shapes.wholeStatus]),
    async handle(server, asked) {
      const found = await findContext(server, asked, false);
      if (found === null) {
        const running = listRunning(server.store).map((deployment) => runningJson(server.store, deployment));
        return { ...commonStatus(server), running, projects: listProjects(server) };
      }
      if ("kind" in found) return found;
      const { store, project, repoPath, refs, catchUp, secretUses, fault } = found;
      const running = findRunning(store);
      return {
        ...commonStatus(found),
        ...{ project, repoPath, branches: branchesOf(refs), fault },
        running: running && runningJson(store, running),
        catchUp: catchUpJson(catchUp.report()),
        secrets: judgeSecrets(secretUses(), Date.now()),
        paused: pauseJson(findPause(store)),
      };
    },
  }),
  metrics: call({
    does: "The metrics, for Prometheus",
    ...{ method: "GET", path: "/metrics", right: "scraper", takes: {} },
    gives: "text/plain; version=0.0.4; charset=utf-8",
    handle: (server) => {
      const text = metricsText(server);
      return {
        kind: "stream",
        write(response) {
          response.end(text);
        },
      };
    },
  }),
  /** For a program that asks every few seconds, such as Docker: the same answer as that of the webhook's port. */
  health: call({
    does: "Whether the service does its work",
    ...{ method: "GET", path: "/health", right: "server", takes: {} },
    gives: v.strictObject({ status: v.literal("ok") }),
    handle({ findFault }) {
      const detail = findFault();
      return detail === null ? { status: "ok" as const } : refuse("unhealthy", detail);
    },
  }),
  /** A command that is killed leaves nothing behind. A running script goes on. */
  hold: call({
    does: "Keep deployments from starting for as long as the connection lasts",
    ...{ method: "POST", path: "/hold", right: "server", gives: "application/x-ndjson" },
    takes: { reason: v.optional(takes.text) },
    handle: ({ turns, store, log }, asked, { name: heldBy }) => ({
      kind: "stream",
      write(response) {
        const reason = personText(asked.reason) ?? "";
        const hold: Hold = { sinceMs: Date.now(), reason, heldBy };
        const send = (event: HoldEvent) => response.write(`${JSON.stringify(event)}\n`);
        let isQuiet = false;
        const release = turns.holdAll(hold, () => {
          isQuiet = true;
          send({ event: "quiet" });
        });
        log.info({ event: "control.hold", requestedBy: heldBy, reason }, `No deployment starts: ${reason}`);
        if (!isQuiet) send({ event: "waiting", running: listRunning(store).map(deploymentJson) });
        response.once("close", () => {
          release();
          log.info({ event: "control.released" }, "Deployments may start again");
        });
      },
    }),
  }),
};

/** What the status of a project and that of all have in common. */
function commonStatus(context: ServerContext) {
  const { store, startedAtMs, address, statePath, taking, turns } = context;
  return {
    ...{ version: readVersion(), startedAt: instant(startedAtMs), statePath },
    ...{ address: address?.address ?? null, port: address?.port ?? null },
    waiting: listWaiting(store).map(deploymentJson),
    last: listLastOfBranches(store).map(deploymentJson),
    health: healthJson(context),
    serverFaults: context.findServerFaults(),
    hold: holdJson(turns.holds()),
    inbox: inboxJson(taking),
  };
}

/** Whether pushes are received and deployed. A restart helps against less than that, so Docker asks `showHealth`. */
function healthJson({
  findFault,
  taking,
}: Pick<ServerContext, "findFault" | "taking">): StatusJson["health"] {
  const inbox = inboxJson(taking);
  const isReached = inbox === null || (inbox.reachedAt !== null && inbox.failure === null);
  const detail = findFault() ?? (isReached ? null : unreached);
  return { isHealthy: detail === null, detail };
}

const unreached = "No pushes come: front does not call, or its spool cannot be read.";

function inboxJson(taking: ServerContext["taking"]): StatusJson["inbox"] {
  if (taking === null) return null;
  const { reachedAtMs, failure } = taking.report();
  return { reachedAt: instantOrNull(reachedAtMs), failure };
}

function runningJson(store: Store, deployment: Deployment): NonNullable<StatusJson["running"]> {
  const step = listSteps(store, deployment).findLast(({ attempt }) => attempt === deployment.attempts);
  return { deployment: deploymentJson(deployment), step: step ? stepJson(step) : null };
}

function catchUpJson({ intervalMs, lookedAtMs, failure }: CatchUpReport): StatusJson["catchUp"] {
  return { intervalMs, lookedAt: instantOrNull(lookedAtMs), failure };
}

const dayMs = 24 * 3_600_000;
/** In most projects, every webhook is used within this time. */
const quietMs = 7 * dayMs;

/**
 * Decides whether the previous secret is safe to drop: the current one has signed a delivery since the previous one last
 * did, and the previous one has signed none for seven days.
 */
export function judgeSecrets(
  { current, previous }: ReturnType<ProjectContext["secretUses"]>,
  nowMs: number,
): SecretsJson {
  const advice = previous && adviceOn(current, previous, nowMs);
  return {
    current: secretJson(current),
    previous: previous && secretJson(previous),
    canDropPrevious: advice === null ? null : advice === safeToDrop,
    advice,
  };
}

const safeToDrop =
  "Safe to drop: not used for 7 days, and the current secret was used since. Run: hotpush secret drop-previous";

function adviceOn(current: SecretUse, previous: SecretUse, nowMs: number): string {
  // Before the current secret was known, nothing was observed.
  const quietSinceMs = Math.max(previous.lastUsedAtMs ?? 0, current.knownSinceMs);
  const isCurrentUsed = (current.lastUsedAtMs ?? 0) > (previous.lastUsedAtMs ?? 0);
  if (!isCurrentUsed)
    return "Not safe to drop: the current secret was not used since. Set it in the webhook's form at the git host.";
  if (nowMs - quietSinceMs >= quietMs) return safeToDrop;
  const quiet = age(nowMs - quietSinceMs);
  return `Safe to drop when it was not used for 7 days; so far ${quiet}. The current secret was used since. If only one webhook had it, drop it now: hotpush secret drop-previous --force`;
}

function secretJson({ knownSinceMs, lastUsedAtMs, host, deliveryId }: SecretUse): SecretJson {
  return { knownSince: instant(knownSinceMs), lastUsedAt: instantOrNull(lastUsedAtMs), host, deliveryId };
}

function age(ms: number): string {
  return ms < 2 * dayMs ? formatDuration(Math.max(0, ms)) : `${Math.floor(ms / dayMs)} days`;
}
