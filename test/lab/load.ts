import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { githubPush, type ReplyBody } from "../harness/delivery.ts";
import { digestOf, readDeployments, readRecorded } from "../harness/records.ts";
import { until } from "../harness/until.ts";

/** One kind of client, and how many: each sends its next request after an answer. */
interface Clients {
  readonly count: number;
  readonly method: "GET" | "POST";
  readonly keepsConnection: boolean;
  /** How long the app takes to answer. */
  readonly workMs: number;
}

const mixture: readonly Clients[] = [
  { count: 6, method: "GET", keepsConnection: true, workMs: 0 },
  { count: 3, method: "GET", keepsConnection: false, workMs: 0 },
  { count: 4, method: "POST", keepsConnection: true, workMs: 0 },
  { count: 2, method: "POST", keepsConnection: false, workMs: 0 },
  { count: 4, method: "GET", keepsConnection: true, workMs: 2_000 },
  { count: 2, method: "POST", keepsConnection: true, workMs: 2_000 },
];

/** The clients that send short requests. */
export const fastMixture = mixture.filter(({ workMs }) => workMs === 0);

const body = Buffer.alloc(1024, "x");
const timeoutMs = 60_000;

export interface Answer {
  readonly atMs: number;
  readonly latencyMs: number;
  readonly isFast: boolean;
  /** The version in the app's answer; null if the request failed. */
  readonly version: string | null;
  readonly failure: string | null;
}

export type Load = ReturnType<typeof startLoad>;

export type LoadResult = Awaited<ReturnType<Load["stop"]>>;

/**
 * Real load on `origin` without a retry: kept and new connections, GET and POST, and requests of two seconds. Anything but
 * a complete 2xx answer is a failure.
 *
 * @param host of the site, if several are at `origin`
 */
export function startLoad(
  origin: string,
  pauseMs: number = 10,
  host: string = new URL(origin).host,
  kinds: readonly Clients[] = mixture,
) {
  const answers: Answer[] = [];
  const state = { isStopping: false };
  const clients = kinds.flatMap((kind) =>
    Array.from({ length: kind.count }, (_, index) => client(kind, (index * kind.workMs) / kind.count)),
  );

  /** `delayMs` spreads the slow ones, so that some always have just begun and others are about to end. */
  async function client(kind: Clients, delayMs: number): Promise<void> {
    await sleep(delayMs);
    const agent = kind.keepsConnection ? new Agent({ keepAlive: true, maxSockets: 1 }) : false;
    while (!state.isStopping) {
      answers.push(await ask({ origin, host }, kind, agent));
      if (kind.workMs === 0) await sleep(pauseMs);
    }
    if (agent) agent.destroy();
  }

  /** Stops after the requests in flight have been answered. */
  async function stop() {
    state.isStopping = true;
    await Promise.all(clients);
    const failures = answers.filter(({ failure }) => failure !== null);
    const versions = [...new Set(answers.flatMap(({ version }) => version ?? []))];
    return { answers, failures, versions };
  }

  return { answers, stop };
}

function ask(
  { origin, host }: { readonly origin: string; readonly host: string },
  { method, workMs }: Clients,
  agent: Agent | false,
): Promise<Answer> {
  const atMs = performance.now();
  return new Promise((resolve) => {
    const end = (version: string | null, failure: string | null) =>
      resolve({ atMs, latencyMs: performance.now() - atMs, isFast: workMs === 0, version, failure });
    const options = { method, agent, headers: { host }, timeout: timeoutMs };
    const sent = request(`${origin}/?ms=${workMs}`, options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", (error) => end(null, `${method}: ${error.message}`));
      response.on("end", () => {
        const [version = "", , size] = Buffer.concat(chunks).toString().split(" ");
        const isWhole = Number(size) === (method === "POST" ? body.length : 0);
        if (response.statusCode === 200 && response.complete && isWhole) end(version, null);
        else end(null, `${method}: status ${response.statusCode}`);
      });
    });
    sent.on("timeout", () => sent.destroy(new Error("timed out")));
    sent.on("error", (error) => end(null, `${method}: ${error.message}`));
    sent.end(method === "POST" ? body : undefined);
  });
}

/**
 * About 50 requests a second, so that the machine has time for the roll-outs: the tests assert that nothing fails, not
 * the throughput. `npm run bench:rollout` sends a thousand a second.
 */
const pauseMs = 300;
/** How many answers come before the work, and after it, at least. */
const answersAround = 30;

/** Does `work` under load. @returns the answers; a failed request is an error */
export async function underLoad(origin: string, work: () => Promise<void>): Promise<LoadResult> {
  const [result] = await during([startLoad(origin, pauseMs)], work);
  return result ?? assert.fail();
}

/** Does `work` under each load, and ends them. @returns the answers of each; a failed request is an error */
export async function during(loads: readonly Load[], work: () => Promise<void>) {
  const results = await measured(loads, work);
  assertNoneFailed(results);
  return results;
}

/** A test that fails by this is not tried again (test/run.ts). */
export function assertNoneFailed(results: readonly LoadResult[]): void {
  const failures = results.flatMap((result) => result.failures);
  const count = results.reduce((sum, { answers }) => sum + answers.length, 0);
  assert.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${count} requests failed`);
}

/** The same where requests may fail. Each load has so many answers before the work, and after it. */
export async function measured(
  loads: readonly Load[],
  work: () => Promise<void>,
  count: number = answersAround,
) {
  const stop = () => Promise.all(loads.map((load) => load.stop()));
  try {
    await untilAnswered(loads, count);
    await work();
    await untilAnswered(loads, count);
  } finally {
    await stop();
  }
  return await stop();
}

/** Waits until each has got so many answers more. */
export async function untilAnswered(loads: readonly Load[], count: number = answersAround): Promise<void> {
  const wanted = loads.map(({ answers }) => answers.length + count);
  await until("answers", () => loads.every(({ answers }, index) => answers.length > (wanted[index] ?? 0)));
}

type PushResult = Awaited<ReturnType<typeof pushOnce>>;

const pushPauseMs = 50;
const longestDeploymentsMs = 120_000;

/** Sends new signed pushes, twenty a second, until `stop` is called, which returns their results. */
export function startPushes(origin: string, secret?: string) {
  const sent: Promise<PushResult>[] = [];
  const sending = setInterval(() => sent.push(pushOnce(origin, secret)), pushPauseMs);
  return {
    stop(): Promise<readonly PushResult[]> {
      clearInterval(sending);
      return Promise.all(sent);
    },
  };
}

/** Waits until all deployments have ended. No push may have failed; each must be deployed or superseded. */
export async function assertNoneLost(results: readonly PushResult[], statePath: string): Promise<void> {
  const failures = results.filter(({ status }) => status !== 202);
  assert.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${results.length} pushes failed`);
  const open = ["queued", "running", "interrupted"];
  const haveEnded = () => readDeployments(statePath).every(({ state }) => !open.includes(state));
  await until("every deployment has ended", haveEnded, longestDeploymentsMs);
  // Also of those that are pruned from the history.
  const sql = `SELECT digest, coalesce(deployments.state, last_state) AS state
    FROM deliveries LEFT JOIN deployments ON deployments.id = deployment_id`;
  const rows = readRecorded(statePath, ({ all }) => all(sql));
  const states = new Map(rows.map(({ digest, state }) => [digest, state]));
  const ends = results.map(({ digest }) => ({ digest, state: states.get(digest) }));
  const lost = ends.filter(({ state }) => state !== "succeeded" && state !== "superseded");
  assert.deepEqual(lost.slice(0, 3), [], `${lost.length} of ${results.length} pushes were lost`);
}

/** Sends a push once, as a git host does. @returns what its sender sees; the status of a failed connection is 0 */
async function pushOnce(origin: string, secret?: string) {
  const startMs = performance.now();
  const took = () => Math.round(performance.now() - startMs);
  const { headers, body } = githubPush({}, secret);
  const digest = digestOf({ body });
  try {
    const response = await fetch(`${origin}/webhook`, { method: "POST", headers, body: body as string });
    const { detail } = (await response.json()) as ReplyBody;
    return { status: response.status, digest, failure: detail ?? null, tookMs: took() };
  } catch (error) {
    return { status: 0, digest, failure: String((error as Error).cause ?? error), tookMs: took() };
  }
}
