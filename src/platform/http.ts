import { constants, fstatSync } from "node:fs";
import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from "node:http";
import { openFile } from "./files.ts";
import { O_PATH } from "./foreign-files.ts";

/**
 * The parts of Node's HTTP that are used. An `import` of `node:http` evaluates all its exports, and so loads the WebSocket
 * and fetch of undici, which nothing here uses: 14 MB of memory and 30 ms of every start.
 */
const http = process.getBuiltinModule("node:http");
export const { STATUS_CODES } = http;

/** Where a request goes: a URL, or a path on a server that listens on a Unix socket. */
export type HttpTarget = URL | { readonly socketPath: string; readonly path: string };

export interface HttpRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** From the first byte sent to the last byte received; without it there is no limit. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** Accept an invalid certificate too, if nothing depends on who answers. */
  readonly acceptsAnyCertificate?: boolean;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A longer answer is cut here: no server that we ask has so much to say. */
const longestAnswerBytes = 64 * 1024 * 1024;

/**
 * Sends one request on a connection of its own and reads the whole answer. Redirects are not followed.
 *
 * @param longestBytes the body is cut after so many
 * @throws the system's or OpenSSL's error, with its `code`; `ETIMEDOUT` after `timeoutMs`
 */
export async function sendHttp(
  target: HttpTarget,
  request: HttpRequest = {},
  longestBytes: number = longestAnswerBytes,
): Promise<HttpAnswer> {
  const { timeoutMs } = request;
  const late = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
  const signals = [late, request.signal].filter((signal) => signal !== undefined);
  try {
    const answer = await openHttp(target, { ...request, signal: AbortSignal.any(signals) });
    const { statusCode: status = 0, headers } = answer;
    return { status, headers, body: await readBody(answer, longestBytes) };
  } catch (error) {
    throw late?.aborted ? failure("ETIMEDOUT", `no answer within ${(timeoutMs ?? 0) / 1_000} s`) : error;
  }
}

/**
 * Sends one request on a connection of its own, for an answer that is read as it comes.
 *
 * @throws as `sendHttp`
 */
export function openHttp(
  target: HttpTarget,
  { body, headers, method = "GET", signal, acceptsAnyCertificate = false }: HttpRequest,
): Promise<IncomingMessage> {
  const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const options: RequestOptions & { readonly rejectUnauthorized?: boolean } = {
    method,
    headers: { ...headers, ...length },
    agent: false,
    ...(signal ? { signal } : {}),
    ...(acceptsAnyCertificate ? { rejectUnauthorized: false } : {}),
  };
  return new Promise((resolve, reject) => {
    const isSecure = target instanceof URL && target.protocol === "https:";
    const { request } = isSecure ? process.getBuiltinModule("node:https") : http;
    const sent = target instanceof URL ? request(target, options) : request({ ...options, ...target });
    sent.on("response", resolve);
    sent.on("error", reject);
    // An answer that switches the protocol (101) is neither a response nor an error: the connection is just closed.
    sent.on("close", () => reject(failure("ECONNRESET", "the connection was closed without an answer")));
    sent.end(body);
  });
}

async function readBody(answer: IncomingMessage, longestBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= longestBytes) break; // Leaving the loop closes the connection.
  }
  return Buffer.concat(chunks).subarray(0, longestBytes);
}

function failure(code: string, message: string): NodeJS.ErrnoException {
  return Object.assign(new Error(message), { code });
}

/**
 * Runs `work` with a short path of the socket at `path`, which is valid until then. Others may put anything in its place: a
 * link is not followed, and the path leads to the socket that was found, whatever is there later.
 *
 * @throws the system's error, or one with the code ENOTSOCK
 */
export async function withShortPath<Result>(
  path: string,
  work: (shortPath: string) => Promise<Result>,
): Promise<Result> {
  using found = openFile(path, O_PATH | constants.O_NOFOLLOW);
  if (fstatSync(found.fd).isSocket()) return await work(`/proc/self/fd/${found.fd}`);
  throw Object.assign(failure("ENOTSOCK", `ENOTSOCK: ${path} is no socket`), { syscall: "connect" });
}
