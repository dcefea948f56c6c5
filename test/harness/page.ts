import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { callRun } from "../../src/calls/client.ts";
import { openApi } from "../../src/calls/openapi.ts";
import { findCall } from "../../src/calls/table.ts";
import { type HttpRequest, sendHttp, withShortPath } from "../../src/platform/http.ts";
import { freePort } from "./listen.ts";
import { makeMachine } from "./machine.ts";
import type { RunningService } from "./service.ts";
import type { Scope } from "./temporary.ts";

export interface AskOptions {
  readonly token?: string | null;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The page of `hotpush front`, and a token for its API. */
export type RunningPage = Awaited<ReturnType<typeof startPage>>;

/** Starts `hotpush front` beside `service`, as a process that has nothing of it but the socket. */
export async function startPage(
  scope: Scope,
  service: RunningService,
  env: Readonly<Record<string, string>> = {},
) {
  const port = await freePort();
  const pageUrl = env.PAGE_URL ?? `http://localhost:${port}`;
  const { child } = await makeMachine(scope).start("front", {
    MALLOC_ARENA_MAX: "1",
    NODE_OPTIONS: "--max-semi-space-size=2",
    PAGE_PORT: String(port),
    PAGE_URL: pageUrl,
    FRONT_SOCKET: join(service.statePath, "front.sock"),
    ...env,
  });
  const token = await makeToken(service, "operator");
  const ask = async (call: string, options: AskOptions = {}) => {
    const headers = { host: new URL(pageUrl).host, ...options.headers };
    const answer = await send(port, call, { token, ...options, headers });
    checkAnswer(call, answer);
    return answer;
  };
  return { port, pid: child.pid ?? 0, token, ask };
}

export async function makeToken({ statePath }: RunningService, role: "viewer" | "operator"): Promise<string> {
  return (await callRun(statePath, "makeToken", { name: `${role}'s token`, role })).secret;
}

async function send(port: number, call: string, { token, body, headers }: AskOptions) {
  const [method = "", path = ""] = call.split(" ");
  const own = { ...(token && { authorization: `Bearer ${token}` }), ...headers };
  const request = { method, headers: own, ...(body && { body: JSON.stringify(body) }) };
  const answer = await sendHttp(new URL(`http://127.0.0.1:${port}${path}`), request);
  const text = answer.body.toString();
  const type = answer.headers["content-type"] ?? "";
  const isJson = /json$/.test(type.split(";")[0] ?? "") && !type.includes("ndjson");
  const json: Readonly<Record<string, unknown>> = isJson ? JSON.parse(text) : {};
  return { status: answer.status, type, text, json };
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads any member of the document
const { paths, components } = openApi() as any;
const ajv = new Ajv2020({ strict: false, validateFormats: false });

/** Holds an answer to what the OpenAPI document says of the call. */
function checkAnswer(call: string, { status, type, json }: Awaited<ReturnType<typeof send>>): void {
  const [method = "", target = ""] = call.split(" ");
  const found = findCall(method, target.split("?")[0]?.replace(/^\/api/, "") ?? "");
  const path = `/api${found?.row.path.replaceAll(/:(\w+)/g, "{$1}")}`;
  const responses = paths[path]?.[method.toLowerCase()]?.responses ?? {};
  const isRefused = status >= 400;
  if (isRefused) assert.equal(type, "application/problem+json");
  else if (found !== null) assert.equal(String(status), Object.keys(responses)[0], call);
  const schema = isRefused
    ? components.schemas.Problem
    : responses[status]?.content["application/json"]?.schema;
  if (schema === undefined) return;
  const isValid = ajv.validate({ ...schema, components }, json);
  assert.ok(isValid, `${call}: ${ajv.errorsText()}\n${JSON.stringify(json)}`);
}

type Service = Pick<RunningService, "statePath">;

/** A call such as `GET /projects` over the page's socket. */
export interface PageCall {
  readonly credential: string | null;
  readonly body?: object;
}

/** Calls as `hotpush page` does. */
export function callAsPage({ statePath }: Service, call: string, { credential, body }: PageCall) {
  const [method = "", path = ""] = call.split(" ");
  const authorization = credential === null ? {} : { authorization: `Bearer ${credential}` };
  const headers = { ...authorization, "x-visitor-address": "192.0.2.7" };
  const request = { method, headers, ...(method === "POST" && { body: JSON.stringify(body ?? {}) }) };
  return withShortPath(join(statePath, "front.sock"), (socketPath) =>
    sendHttp({ socketPath, path }, request),
  );
}

/** @returns the secret of a link */
export async function makeSignInLink(
  { statePath }: Service,
  { name = "Ann", role = "operator" }: { readonly name?: string; readonly role?: "viewer" | "operator" } = {},
): Promise<string> {
  return (await callRun(statePath, "makeLink", { name, role })).link;
}

/** @returns the secret of a new session; null if the link opens none */
export async function openSession(service: Service, link: string): Promise<string | null> {
  const { status, body } = await callAsPage(service, "POST /sessions", { credential: null, body: { link } });
  return status === 200 ? (JSON.parse(String(body)) as { session: string }).session : null;
}

export interface FormOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** null: the form has none. By default it is that of the screen at `/`. */
  readonly token?: string | null;
}

/**
 * A browser as far as HTTP goes: it keeps the cookie, and says where its forms come from.
 *
 * @param cookie as a `Cookie` header has it; null: the browser has none
 */
export function browse({ port }: Pick<RunningPage, "port">, cookie: string | null) {
  const own = { host: `localhost:${port}`, ...(cookie && { cookie }) };

  async function request(path: string, { headers, ...rest }: HttpRequest) {
    const target = new URL(`http://127.0.0.1:${port}${path}`);
    const answer = await sendHttp(target, { ...rest, headers: { ...own, ...headers } });
    return { status: answer.status, headers: answer.headers, text: answer.body.toString() };
  }

  const get = (path: string, headers: Readonly<Record<string, string>> = {}) => request(path, { headers });
  return {
    cookie,
    get,
    async send(
      path: string,
      fields: Readonly<Record<string, string>>,
      { headers = { origin: `http://localhost:${port}` }, token }: FormOptions = {},
    ) {
      const proof = token === undefined ? tokenIn((await get("/account")).text) : token;
      const body = String(new URLSearchParams({ ...fields, ...(proof && { token: proof }) }));
      return await request(path, { method: "POST", headers, body });
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
) {
  const link = await makeSignInLink(service, person);
  const { headers, status, text } = await browse(page, null).send("/sign-in", { link }, { token: null });
  if (status !== 303) throw new Error(`signing in was answered with ${status}: ${text}`);
  return browse(page, cookieOf(headers));
}

export function cookieOf(headers: IncomingHttpHeaders): string {
  return headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
}
