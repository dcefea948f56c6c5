import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

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

/** How many clients send short requests. */
export const fastClients = mixture.reduce((sum, { count, workMs }) => sum + (workMs === 0 ? count : 0), 0);

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

export interface Load {
  /** Everything answered so far. */
  readonly answers: readonly Answer[];
  /** Stops after the requests in flight have been answered. */
  readonly stop: () => Promise<LoadResult>;
}

export interface LoadResult {
  readonly answers: readonly Answer[];
  readonly failures: readonly Answer[];
  readonly versions: readonly string[];
}

/**
 * Real load on `origin` without a retry: kept and new connections, GET and POST, and requests of two seconds. Anything but
 * a complete 2xx answer is a failure.
 *
 * @param host of the site, if several are at `origin`
 */
export function startLoad(origin: string, pauseMs: number = 10, host: string = new URL(origin).host): Load {
  const answers: Answer[] = [];
  const state = { isStopping: false };
  const clients = mixture.flatMap((kind) =>
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

  async function stop(): Promise<LoadResult> {
    state.isStopping = true;
    await Promise.all(clients);
    const failures = answers.filter(({ failure }) => failure !== null);
    const versions = [...new Set(answers.flatMap(({ version }) => version ?? []))];
    return { answers, failures, versions };
  }

  return { answers, stop };
}

interface Site {
  readonly origin: string;
  readonly host: string;
}

function ask({ origin, host }: Site, kind: Clients, agent: Agent | false): Promise<Answer> {
  const atMs = performance.now();
  const { method, workMs } = kind;
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
