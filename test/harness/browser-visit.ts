import type { IncomingHttpHeaders } from "node:http";
import { openHttp } from "../../src/platform/http.ts";
import type { RunningPage } from "./page.ts";
import type { RunningService } from "./service.ts";
import { makeSignInLink } from "./sign-in.ts";

export interface Visited {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface FormOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** null: the form has none. By default it is that of the screen at `/`. */
  readonly token?: string | null;
}

/** A browser as far as HTTP goes: it keeps the cookie, and says where its forms come from. */
export interface Visitor {
  readonly cookie: string | null;
  readonly get: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Visited>;
  readonly send: (
    path: string,
    fields: Readonly<Record<string, string>>,
    options?: FormOptions,
  ) => Promise<Visited>;
}

/** @param cookie as a `Cookie` header has it; null: the browser has none */
export function browse({ port }: Pick<RunningPage, "port">, cookie: string | null): Visitor {
  const own = { host: `localhost:${port}`, ...(cookie && { cookie }) };

  async function request(method: string, path: string, headers: object, body?: string): Promise<Visited> {
    const target = new URL(`http://127.0.0.1:${port}${path}`);
    const answer = await openHttp(target, {
      method,
      headers: { ...own, ...headers },
      ...(body !== undefined && { body }),
    });
    const pieces = await Array.fromAsync(answer as AsyncIterable<Buffer>);
    return {
      status: answer.statusCode ?? 0,
      headers: answer.headers,
      text: Buffer.concat(pieces).toString(),
    };
  }

  const get: Visitor["get"] = (path, headers = {}) => request("GET", path, headers);
  return {
    cookie,
    get,
    async send(path, fields, { headers = { origin: `http://localhost:${port}` }, token } = {}) {
      const proof = token === undefined ? tokenIn((await get("/sessions")).text) : token;
      const body = String(new URLSearchParams({ ...fields, ...(proof && { token: proof }) }));
      return await request("POST", path, headers, body);
    },
  };
}

/** The token of the first form of a screen; null: it has no form. */
export function tokenIn(text: string): string | null {
  return /name="token" value="([^"]+)"/.exec(text)?.[1] ?? null;
}

/** Follows a link of `hotpush open`. */
export async function signIn(
  page: RunningPage,
  service: RunningService,
  person: { readonly name?: string; readonly role?: "viewer" | "operator" } = {},
): Promise<Visitor> {
  const link = await makeSignInLink(service, person);
  const { headers, status, text } = await browse(page, null).send("/sign-in", { link }, { token: null });
  if (status !== 303) throw new Error(`signing in was answered with ${status}: ${text}`);
  return browse(page, cookieOf(headers));
}

export function cookieOf(headers: IncomingHttpHeaders): string {
  return headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
}
