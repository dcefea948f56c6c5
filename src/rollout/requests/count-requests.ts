import { rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { listContainers } from "../../platform/docker/container.ts";
import type { SiteRequests } from "../../site-requests.ts";
import type { LiveDirectory, Rollout } from "../context.ts";
import { logsRequests } from "../proxy/caddy.ts";
import { note } from "../report/report.ts";
import { countingFile, countingLines, requestsLog } from "./caddy-lines.ts";
import { clientsThatLeft } from "./clients-that-left.ts";
import { followLog, type LogFollower } from "./follow-log.ts";
import { createTally, type RequestCount, readLoggedRequest, type Tally } from "./tally.ts";

type Counted = Pick<Rollout, "engine" | "project" | "liveDirectory" | "liveFilesRead" | "report">;

/** The guard sees what went wrong this much later. */
const pollMs = 100;
/** Caddy writes the line when the client has its answer already. */
const settleMs = 100;

/**
 * Does `work` while the requests that go through the proxy are counted, gives it the count so far, and reports their
 * number, whether it succeeds or not. Without the lines in the Caddyfile that this needs, it reports those lines. Nothing
 * that goes wrong with the count changes the roll-out.
 */
export async function withRequestsCounted<Result>(
  rollout: Counted,
  work: (requestCount: RequestCount | null) => Promise<Result>,
): Promise<Result> {
  const counting = await startCounting(rollout).catch((error: unknown) => noteFault(rollout, error));
  try {
    return await work(counting?.count ?? null);
  } finally {
    await counting?.end().catch((error: unknown) => noteFault(rollout, error));
  }
}

function noteFault({ report }: Counted, error: unknown): null {
  note({ report }, `the requests cannot be counted: ${error instanceof Error ? error.message : error}`);
  return null;
}

interface Counting {
  /** Null if Caddy does not log requests. */
  readonly count: RequestCount | null;
  /** Reports the requests since the start. */
  readonly end: () => Promise<void>;
}

async function startCounting(rollout: Counted): Promise<Counting | null> {
  const { liveDirectory: live, liveFilesRead, report } = rollout;
  if (live === null || liveFilesRead === null || liveFilesRead.size === 0) return null;
  if (!(await logsRequests(live)))
    return {
      count: null,
      end: async () => report({ event: "requests", sites: null, missingLines: linesFor(live) }),
    };
  const count = await openCount(rollout, live);
  const end = async () => report({ event: "requests", sites: await count.end(), missingLines: [] });
  return { count: count.soFar, end };
}

/** On the machine part, `init` and `upgrade` write them. */
function linesFor({ project }: LiveDirectory): readonly string[] {
  return project === null ? countingLines("/run/live", null) : [];
}

function logOf({ path, project }: LiveDirectory): string {
  return requestsLog(project === null ? path : dirname(path), project);
}

/** A count of requests that goes on. */
interface Count {
  readonly soFar: RequestCount;
  readonly end: () => Promise<readonly SiteRequests[]>;
}

/** Has Caddy log requests from now on, and counts them. */
async function openCount(rollout: Counted, live: LiveDirectory): Promise<Count> {
  const sinceMs = Date.now();
  const tally = createTally(await newContainers(rollout));
  const log = await followLog(logOf(live));
  const stopLogging = await startLogging(live);
  const over = new AbortController();
  const polling = poll(() => readInto(tally, log), over.signal);
  polling.catch(() => {}); // `end` reports it.
  return {
    soFar: tally,
    async end() {
      await stopLogging();
      over.abort();
      await polling;
      await sleep(settleMs);
      await readInto(tally, log);
      await log.close();
      const left = tally.cutOff() === 0 ? null : await findLeavers(rollout, live, sinceMs);
      return tally.sites((host) => left?.get(host) ?? 0);
    },
  };
}

/** @returns whether a container is one that the roll-out has started, by its name */
async function newContainers({ engine, project }: Counted): Promise<(container: string) => boolean> {
  const running = new Set((await listContainers(engine, project.name)).map(({ name }) => name));
  return (container) => container.startsWith(`${project.name}-`) && !running.has(container);
}

/** @returns a function that ends it */
async function startLogging(live: LiveDirectory): Promise<() => Promise<void>> {
  const path = join(live.path, countingFile);
  await writeFile(path, "", { mode: 0o644 });
  return () => rm(path, { force: true });
}

async function readInto(tally: Tally, log: LogFollower): Promise<void> {
  for (const line of await log.read()) {
    const request = readLoggedRequest(line);
    if (request !== null) tally.add(request);
  }
}

async function findLeavers(rollout: Counted, live: LiveDirectory, sinceMs: number) {
  const left = await clientsThatLeft(rollout.engine, live, sinceMs);
  const text = "some answers were cut off; whether the clients left is not known: Caddy's log cannot be read";
  if (left === null) note(rollout, text);
  return left;
}

async function poll(read: () => Promise<void>, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await read();
    await sleep(pollMs, undefined, { signal: over }).catch(() => {});
  }
}
