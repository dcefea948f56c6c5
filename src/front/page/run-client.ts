import type { IncomingMessage } from "node:http";
import { json } from "node:stream/consumers";
import { atMost } from "#platform/async";
import { openHttp, withShortPath } from "#platform/http";
import { type HttpProblemCode, type Problem, ProblemError } from "#problems";

/** Somebody who asks the page, as `run` has to know them. */
export interface Visit {
  /** A session or a token; null: none. `run` decides what it may do. */
  readonly credential: string | null;
  readonly address: string;
  readonly agent: string;
}

/** The request for a call. */
export interface RunRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
}

/** `hotpush run`, reached by its socket for the page. Both throw a ProblemError if it refuses, or does not answer in 10 s. */
export interface RunClient {
  readonly call: (visit: Visit, request: RunRequest) => Promise<object>;
  /** An answer that goes on. The page bounds those of each visitor (page.ts). */
  readonly open: (visit: Visit, path: string, signal: AbortSignal) => Promise<IncomingMessage>;
}

const timeoutMs = 10_000;
/** Fewer than the connections that `run` accepts: two hundred pages that load at the same moment wait in line. */
const mostCalls = 48;

/** Finds the `hotpush run` that listens at `socket`, with each call again. */
export function connectRun(socket: string): RunClient {
  const callInTurn = atMost(mostCalls);

  async function send(visit: Visit, { path, ...request }: RunRequest, signal: AbortSignal) {
    const { credential, address, agent } = visit;
    const authorization = credential === null ? {} : { authorization: `Bearer ${credential}` };
    const headers = { ...authorization, "x-visitor-address": address, "x-visitor-agent": agent };
    const answer = await withShortPath(socket, (socketPath) =>
      openHttp({ socketPath, path }, { ...request, headers, signal }),
    );
    if ((answer.statusCode ?? 500) < 400) return answer;
    const { code, detail } = (await json(answer)) as Problem<HttpProblemCode>;
    throw new ProblemError({ code, detail });
  }

  return {
    call: (visit, request) =>
      callInTurn(async () => {
        const signal = AbortSignal.timeout(timeoutMs);
        return (await send(visit, request, signal).then(json).catch(orUnreachable)) as object;
      }),
    async open(visit, path, leaving) {
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(), timeoutMs);
      const signal = AbortSignal.any([leaving, late.signal]);
      const opening = send(visit, { method: "GET", path }, signal).catch(orUnreachable);
      return await opening.finally(() => clearTimeout(timer));
    },
  };
}

function orUnreachable(error: unknown): never {
  throw error instanceof ProblemError ? error : new ProblemError(unreachable);
}

const unreachable = {
  code: "run_unreachable",
  detail: "Hotpush does not answer at the moment. Pushes are still received; try again in some seconds.",
} as const;
