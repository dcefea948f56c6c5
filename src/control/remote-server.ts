import { readFileSync, statSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { type HttpRequest, openHttp } from "../platform/http.ts";
import { CommandError } from "../problems.ts";

/** A Hotpush on another machine, reached by the address of its page. */
export interface RemoteServer {
  readonly url: URL;
  readonly token: string;
}

/**
 * The server of HOTPUSH_SERVER, with the token of HOTPUSH_TOKEN_FILE.
 *
 * @returns null if HOTPUSH_SERVER is not set
 * @throws CommandError if the address or the file cannot be used
 */
export function findRemoteServer(env: NodeJS.ProcessEnv): RemoteServer | null {
  const { HOTPUSH_SERVER: address, HOTPUSH_TOKEN_FILE: file } = env;
  if (!address) return null;
  const url = URL.canParse(address) ? new URL(address) : null;
  const isLocal = url?.hostname === "localhost" || url?.hostname === "127.0.0.1";
  if (url === null || !(url.protocol === "https:" || (url.protocol === "http:" && isLocal)))
    throw new CommandError(
      `The server is "${address}": write the address of its page, such as https://hotpush.example.com (http only for localhost).`,
    );
  if (!file)
    throw new CommandError(
      "A token is missing. On the server: hotpush token create --name laptop --deploy. Write it to a file, and name that: --token-file <path>, or HOTPUSH_TOKEN_FILE.",
    );
  return { url, token: readToken(file) };
}

function readToken(path: string): string {
  try {
    const { mode } = statSync(path);
    if ((mode & 0o077) !== 0)
      throw new CommandError(`Other users can read the token in ${path}. Run: chmod 600 ${path}`);
    const token = readFileSync(path, "utf8").trim();
    if (/^\S{1,100}$/.test(token)) return token;
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError(`The token file ${path} cannot be read (${code}).`);
  }
  throw new CommandError(`There is no token in ${path}: hotpush token create prints one.`);
}

/**
 * Sends a call of a command to the page of the server.
 *
 * @param path as on the operator's socket
 * @throws CommandError with what is wrong, for a person
 */
export async function openRemote(
  { url, token }: RemoteServer,
  path: string,
  request: HttpRequest,
): Promise<IncomingMessage> {
  const target = new URL(`/api/commands${path}`, url);
  const answer = await openHttp(target, { ...request, headers: { authorization: `Bearer ${token}` } }).catch(
    (error: NodeJS.ErrnoException) => {
      throw error.name === "AbortError" ? error : new CommandError(unreachable(url, error));
    },
  );
  const status = answer.statusCode ?? 0;
  const isProblem = answer.headers["content-type"]?.startsWith("application/problem+json") ?? false;
  const isHtml = answer.headers["content-type"]?.startsWith("text/html") ?? false;
  if (isHtml || (status >= 400 && !isProblem) || (status >= 300 && status < 400))
    throw notHotpush(answer, url);
  if (status === 401) {
    answer.destroy();
    throw new CommandError(
      `${url.host} does not know this token. It may have been revoked: hotpush token list, on the server.`,
    );
  }
  return answer;
}

function notHotpush(answer: IncomingMessage, { host }: URL): CommandError {
  answer.destroy();
  return new CommandError(
    `${host} answered with status ${answer.statusCode}, not like the page of a Hotpush. Is it the address of the page?`,
  );
}

function unreachable({ host, hostname }: URL, { code = "", message }: NodeJS.ErrnoException): string {
  switch (code) {
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `There is no host ${hostname}, as far as this machine's DNS knows.`;
    case "ECONNREFUSED":
      return `Nothing listens at ${host}. Is the page running? On the server: hotpush doctor`;
    case "ETIMEDOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return `${host} cannot be reached (${code}).`;
    default:
      return `There is no safe connection to ${host}: ${code ? `${code}, ` : ""}${message}`;
  }
}
