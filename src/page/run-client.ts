import type { IncomingMessage } from "node:http";
import { json } from "node:stream/consumers";
import { openHttp } from "../platform/http.ts";
import { withShortPath } from "../platform/unix-socket.ts";

/** Somebody who asks the page, as `run` has to know them. */
export interface Visit {
  /** A session or a token; null: none. `run` decides what it may do. */
  readonly credential: string | null;
  readonly address: string;
  readonly agent: string;
}

/** What `run` answered. */
export type RunAnswer = { readonly kind: "ok"; readonly status: number; readonly value: object } | Refused;

export interface Refused {
  readonly kind: "refused";
  readonly status: number;
  readonly detail: string;
}

type Headers = Readonly<Record<string, string>>;

/** `hotpush run`, reached by its socket for the page. */
export interface RunClient {
  readonly call: (
    visit: Visit,
    method: "GET" | "POST",
    path: string,
    body?: object,
    headers?: Headers,
  ) => Promise<RunAnswer>;
  /** An answer that goes on. It ends when it is destroyed. */
  readonly open: (visit: Visit, path: string, signal: AbortSignal) => Promise<IncomingMessage | Refused>;
}

const timeoutMs = 10_000;

export function connectRun(socket: string): RunClient {
  async function send(
    visit: Visit,
    request: {
      readonly method: string;
      readonly path: string;
      readonly body?: object;
      readonly headers?: Headers | undefined;
      readonly signal: AbortSignal;
    },
  ): Promise<IncomingMessage | Refused> {
    const { method, path, body, signal } = request;
    const headers = { ...headersOf(visit), ...request.headers };
    const content = body && { body: JSON.stringify(body) };
    try {
      const answer = await withShortPath(socket, (socketPath) =>
        openHttp({ socketPath, path }, { method, headers, ...content, signal }),
      );
      return (answer.statusCode ?? 500) < 400 ? answer : await refused(answer);
    } catch (error) {
      if (signal.aborted && !(signal.reason instanceof DOMException && signal.reason.name === "TimeoutError"))
        throw error;
      return { kind: "refused", status: 503, detail: unreachable };
    }
  }

  return {
    async call(visit, method, path, body, headers) {
      const signal = AbortSignal.timeout(timeoutMs);
      const answer = await send(visit, { method, path, signal, headers, ...(body && { body }) });
      if ("kind" in answer) return answer;
      return { kind: "ok", status: answer.statusCode ?? 200, value: (await json(answer)) as object };
    },
    open: (visit, path, signal) => send(visit, { method: "GET", path, signal }),
  };
}

const unreachable =
  "Hotpush does not answer at the moment. Pushes are still received; try again in some seconds.";

async function refused(answer: IncomingMessage): Promise<Refused> {
  const { detail } = (await json(answer)) as { readonly detail: string };
  return { kind: "refused", status: answer.statusCode ?? 500, detail };
}

function headersOf({ credential, address, agent }: Visit): Readonly<Record<string, string>> {
  const authorization = credential === null ? {} : { authorization: `Bearer ${credential}` };
  return { ...authorization, "x-visitor-address": address, "x-visitor-agent": agent };
}
