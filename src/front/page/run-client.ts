import type { IncomingMessage } from "node:http";
import { json } from "node:stream/consumers";
import type { requestFor } from "#calls/table";
import { atMost } from "#platform/async";
import { openHttp, withShortPath } from "#platform/http";
import { type HttpProblemCode, type Problem, ProblemError } from "#problems";

/** Somebody who asks the page, as `run` has to know them. */
export interface Visit {
  /** A session or a token; null: none. `run` decides what it may do. */
  readonly credential: string | null;
  readonly address: string;
  readonly agent: string;
  readonly hasLeft: () => boolean;
}

/** The request for a call. */
export type RunRequest = ReturnType<typeof requestFor>;

/** `hotpush run`, reached by its socket for the page. Both throw a ProblemError if it refuses, or does not answer in 10 s. */
export interface RunClient {
  readonly call: (visit: Visit, request: RunRequest) => Promise<object>;
  /** An answer that goes on, and holds one of the page's places until it has ended or is destroyed. */
  readonly open: (visit: Visit, path: string, signal: AbortSignal) => Promise<IncomingMessage>;
}

const timeoutMs = 10_000;
/** Together fewer than the connections that `run` accepts: two hundred pages that load at the same moment wait in line. */
const mostCalls = 48;
/** The page bounds those of each visitor (page.ts). */
const mostStreams = 432;

/** Finds the `hotpush run` that listens at `socket`, with each call again. */
export function connectRun(socket: string): RunClient {
  const callInTurn = atMost(mostCalls);
  let streams = 0;

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
        if (visit.hasLeft()) throw new ProblemError(unreachable);
        const signal = AbortSignal.timeout(timeoutMs);
        return (await send(visit, request, signal).then(json).catch(orUnreachable)) as object;
      }),
    async open(visit, path, leaving) {
      if (streams >= mostStreams) throw new ProblemError(unreachable);
      streams += 1;
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(), timeoutMs);
      const signal = AbortSignal.any([leaving, late.signal]);
      try {
        const answer = await send(visit, { method: "GET", path }, signal);
        return answer.once("close", () => (streams -= 1));
      } catch (error) {
        streams -= 1;
        return orUnreachable(error);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

function orUnreachable(error: unknown): never {
  throw error instanceof ProblemError ? error : new ProblemError(unreachable);
}

const unreachable = {
  code: "run_unreachable",
  detail:
    "Hotpush does not answer at the moment. Pushes are still received; try again in some seconds. If you asked for a deployment, look at the history first: it may have begun.",
} as const;
