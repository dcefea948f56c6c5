import { connect, type Socket } from "node:net";
import type { Delivery } from "./delivery.ts";

/** One answer as received. */
export interface RawReply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

export interface ExchangeOptions {
  /** How many final answers are enough; by default, the service must close the connection. */
  readonly replyCount?: number;
  readonly deadlineMs?: number;
}

const longestExchangeMs = 30_000;

/** Writes `bytes` on a new connection, and reads until there are enough answers or the service closes. */
export function exchange(port: number, bytes: string | Buffer, options: ExchangeOptions = {}) {
  return converse(connect({ port, host: "127.0.0.1" }), bytes, options);
}

/** The same on a connection that is open already. */
export function converse(
  socket: Socket,
  bytes: string | Buffer,
  { replyCount = Number.POSITIVE_INFINITY, deadlineMs = longestExchangeMs }: ExchangeOptions = {},
): Promise<ReturnType<typeof parseReplies> & { readonly isClosed: boolean }> {
  return new Promise((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no close and too few answers within ${deadlineMs} ms; so far: ${text}`));
    }, deadlineMs);

    function finish(isClosed: boolean): void {
      clearTimeout(timer);
      socket.destroy();
      resolve({ ...parseReplies(text), isClosed });
    }

    socket.setEncoding("latin1").on("data", (chunk: string) => {
      text += chunk;
      if (parseReplies(text).replies.length >= replyCount) finish(false);
    });
    socket.on("error", () => {});
    socket.on("close", () => finish(true));
    socket.write(bytes);
  });
}

/** The complete answers in `text`. */
export function parseReplies(text: string): { readonly replies: RawReply[] } {
  const replies: RawReply[] = [];
  let rest = text;
  for (let end = rest.indexOf("\r\n\r\n"); end >= 0; end = rest.indexOf("\r\n\r\n")) {
    const [statusLine = "", ...fields] = rest.slice(0, end).split("\r\n");
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
    if (Number.isNaN(status)) throw new Error(`this is not an HTTP answer: ${rest.slice(0, 200)}`);
    const headers = new Headers(fields.map((field) => field.split(/: *(.*)/s, 2) as [string, string]));
    const length = status < 200 ? 0 : Number(headers.get("content-length") ?? 0);
    const body = rest.slice(end + 4, end + 4 + length);
    if (body.length < length) break;
    if (status >= 200) replies.push({ status, headers, body });
    rest = rest.slice(end + 4 + length);
  }
  return { replies };
}

/** A delivery as bytes: `extra` are header lines, `framing` replaces the Content-Length. */
export function onTheWire(
  { headers, body }: Delivery,
  {
    target = "/webhook",
    method = "POST",
    extra = [],
    framing,
  }: {
    readonly target?: string;
    readonly method?: string;
    readonly extra?: readonly string[];
    readonly framing?: readonly string[];
  } = {},
): string {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const length = framing ?? [`Content-Length: ${Buffer.byteLength(body)}`];
  const lines = [`${method} ${target} HTTP/1.1`, "Host: hotpush.test", ...fields, ...extra, ...length];
  return `${lines.join("\r\n")}\r\n\r\n${body.toString("latin1")}`;
}

/** `body` as one chunk, and the final chunk. */
export function asChunks(body: string): string {
  return `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`;
}
