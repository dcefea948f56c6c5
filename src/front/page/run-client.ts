import type { IncomingMessage } from "node:http";
import { json } from "node:stream/consumers";
import { finished } from "node:stream/promises";
import { atMost } from "#platform/async";
import { openHttp } from "#platform/http";
import { withShortPath } from "#platform/listen";
import type { HttpProblemCode } from "#problems";

/** Somebody who asks the page, as `run` has to know them. */
export interface Visit {
  /** A session or a token; null: none. `run` decides what it may do. */
  readonly credential: string | null;
  readonly address: string;
  readonly agent: string;
}

/** What `run` answered. */
export type RunAnswer<Value = object> =
  | { readonly kind: "ok"; readonly status: number; readonly value: Value }
  | Refused;

export interface Refused {
  readonly kind: "refused";
  readonly status: number;
  readonly code: HttpProblemCode;
  readonly detail: string;
}

type Headers = Readonly<Record<string, string>>;

/** `hotpush run`, reached by its socket for the page. */
export interface RunClient {
  readonly call: (
    visit: Visit,
    method: "GET" | "POST",
    path: string,
    body?: string,
    headers?: Headers,
  ) => Promise<RunAnswer>;
  /** An answer that goes on, and holds one of the visitor's places until it has ended or is destroyed. */
  readonly open: (visit: Visit, path: string, signal: AbortSignal) => Promise<IncomingMessage | Refused>;
}

const timeoutMs = 10_000;
/** Together fewer than the connections that `run` accepts: two hundred pages that load at the same moment wait in line. */
const mostCalls = 48;
const mostStreams = 432;
/** A visitor who fills these keeps nobody else waiting. The page bounds the streams of each (page.ts). */
const mostCallsOfVisitor = 24;

/** Finds the `hotpush run` that listens at `socket`, with each call again. A call that gets no answer in 10 s is refused. */
export function connectRun(socket: string): RunClient {
  const callInTurn = atMost(mostCalls);
  const streamInTurn = atMost(mostStreams);
  const callOfVisitor = createLines(mostCallsOfVisitor);

  async function send(
    { credential, address, agent }: Visit,
    request: { readonly method: string; readonly path: string; readonly body?: string | undefined },
    signal: AbortSignal,
    own: Headers = {},
  ): Promise<IncomingMessage | Refused> {
    const { method, path, body } = request;
    const authorization = credential === null ? {} : { authorization: `Bearer ${credential}` };
    const headers = { ...authorization, "x-visitor-address": address, "x-visitor-agent": agent, ...own };
    try {
      const answer = await withShortPath(socket, (socketPath) =>
        openHttp({ socketPath, path }, { method, headers, signal, ...(body !== undefined && { body }) }),
      );
      if ((answer.statusCode ?? 500) < 400) return answer;
      const { code, detail } = (await json(answer)) as Pick<Refused, "code" | "detail">;
      return { kind: "refused", status: answer.statusCode ?? 500, code, detail };
    } catch (error) {
      if (signal.aborted && !(signal.reason instanceof DOMException && signal.reason.name === "TimeoutError"))
        throw error;
      return unreachable;
    }
  }

  return {
    call(visit, method, path, body, headers) {
      const signal = AbortSignal.timeout(timeoutMs);
      const ask = async (): Promise<RunAnswer> => {
        const answer = await send(visit, { method, path, body }, signal, headers);
        if ("kind" in answer) return answer;
        const value = await json(answer).catch((error: unknown) => {
          if (!signal.aborted) throw error;
        });
        if (value === undefined) return unreachable;
        return { kind: "ok", status: answer.statusCode ?? 200, value: value as object };
      };
      return callOfVisitor(visit, () => callInTurn(ask));
    },
    open: (visit, path, signal) =>
      new Promise((resolve, reject) => {
        let isLate = false;
        const waiting = setTimeout(() => {
          isLate = true;
          resolve(unreachable);
        }, timeoutMs);
        streamInTurn(async () => {
          clearTimeout(waiting);
          if (isLate) return;
          const answer = await send(visit, { method: "GET", path }, signal);
          resolve(answer);
          if (!("kind" in answer)) await finished(answer).catch(() => {});
        }).catch(reject);
      }),
  };
}

/** A line for each visitor, so that nobody waits for the requests of another one. */
function createLines(mostAtATime: number) {
  const lines = new Map<string, { readonly inTurn: ReturnType<typeof atMost>; length: number }>();
  return async <Result>({ credential }: Visit, work: () => Promise<Result>): Promise<Result> => {
    if (credential === null) return await work();
    const line = lines.get(credential) ?? { inTurn: atMost(mostAtATime), length: 0 };
    lines.set(credential, line);
    line.length += 1;
    try {
      return await line.inTurn(work);
    } finally {
      line.length -= 1;
      if (line.length === 0) lines.delete(credential);
    }
  };
}

const unreachable: Refused = {
  ...{ kind: "refused", status: 503, code: "run_unreachable" },
  detail: "Hotpush does not answer at the moment. Pushes are still received; try again in some seconds.",
};
