import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { listenHere } from "./listen.ts";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads any member of what it was sent
  readonly json: any;
}

/** A server of somebody else, who is sent reports. */
export interface NotifyTargetServer {
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
  readonly waitFor: (count: number) => Promise<readonly ReceivedRequest[]>;
}

type Answer = (response: ServerResponse, request: ReceivedRequest) => void;

/** Starts a server that keeps what it is sent, and answers as `answer` does: 204 by default. */
export async function startTarget(
  scope: Scope,
  answer: Answer = (response) => void response.writeHead(204).end(),
): Promise<NotifyTargetServer> {
  const requests: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    response.on("error", () => {});
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const { method = "", url = "", headers } = request;
    const received = { method, path: url, headers, text, json: text === "" ? null : JSON.parse(text) };
    requests.push(received);
    answer(response, received);
  });
  const port = await listenHere(scope, server);
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    waitFor: (count) => until(`${count} requests`, () => requests.length >= count && requests),
  };
}
