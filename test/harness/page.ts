import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { callService } from "../../src/control/client.ts";
import { apiRoutes } from "../../src/page/api/routes.ts";
import { schemas } from "../../src/page/api/schemas.ts";
import { openHttp } from "../../src/platform/http.ts";
import { freePort } from "./free-port.ts";
import { LogReader } from "./log-reader.ts";
import { endProcess, mainPath, type RunningService } from "./service.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";

/** The page of `hotpush front`, and a token for its API. */
export interface RunningPage {
  readonly port: number;
  readonly pid: number;
  readonly token: string;
  /** Asks, and holds the answer to what the OpenAPI document says. */
  readonly ask: (call: string, options?: AskOptions) => Promise<ApiAnswer>;
}

export interface AskOptions {
  readonly token?: string | null;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ApiAnswer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  readonly json: Readonly<Record<string, unknown>>;
}

export interface PageOptions {
  /** Where browsers reach it, if that is not its own port. */
  readonly proxyPort?: number;
}

/** Starts `hotpush front` beside `service`, as a process that has nothing of it but the socket. */
export async function startPage(
  scope: Scope,
  service: RunningService,
  { proxyPort }: PageOptions = {},
): Promise<RunningPage> {
  const port = await freePort();
  const directory = temporaryDirectory(scope);
  const projectsPath = join(directory, "projects");
  mkdirSync(projectsPath);
  const urlPort = proxyPort ?? port;
  const child = spawn(process.execPath, ["--max-semi-space-size=4", mainPath, "front"], {
    cwd: "/",
    env: {
      ...{ PATH: process.env.PATH, MALLOC_ARENA_MAX: "1" },
      ...{ PAGE_PORT: String(port), PAGE_HOST: "127.0.0.1", PAGE_URL: `http://localhost:${urlPort}` },
      ...{ WEBHOOK_PORT: "0", WEBHOOK_HOST: "127.0.0.1", STATE_PATH: directory, PROJECTS_PATH: projectsPath },
      FRONT_SOCKET: join(service.statePath, "front.sock"),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  scope.after(() => endProcess(child, "SIGKILL"));
  await new LogReader(child).waitFor(({ event }) => event === "service.started");
  const token = await makeToken(service, "deploy");
  const ask = async (call: string, options: AskOptions = {}) => {
    const headers = { host: `localhost:${urlPort}`, ...options.headers };
    const answer = await send(port, call, { token, ...options, headers });
    checkAnswer(call, answer);
    return answer;
  };
  return { port, pid: child.pid ?? 0, token, ask };
}

export async function makeToken({ statePath }: RunningService, scope: "read" | "deploy"): Promise<string> {
  const body = { name: scope, scope };
  return (await callService<{ secret: string }>(statePath, "POST", "/tokens", body)).secret;
}

async function send(port: number, call: string, { token, body, headers }: AskOptions): Promise<ApiAnswer> {
  const [method = "", path = ""] = call.split(" ");
  const own = { ...(token && { authorization: `Bearer ${token}` }), ...headers };
  const request = { method, headers: own, ...(body && { body: JSON.stringify(body) }) };
  const response = await openHttp(new URL(`http://127.0.0.1:${port}${path}`), request);
  const text = Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>)).toString();
  const type = response.headers["content-type"] ?? "";
  const isJson = /json$/.test(type.split(";")[0] ?? "") && !type.includes("ndjson");
  const json = isJson ? (JSON.parse(text) as ApiAnswer["json"]) : {};
  return { status: response.statusCode ?? 0, type, text, json };
}

const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema({ $id: "api", components: { schemas } });
const validators = new Map<string, ValidateFunction>();

function checkAnswer(call: string, { status, type, json }: ApiAnswer): void {
  const route = Object.entries(apiRoutes).find(([key]) => patternOf(key).test(call.split("?")[0] ?? ""))?.[1];
  const isRefused = status >= 400;
  if (!isRefused) assert.equal(status, route?.status, call);
  if (isRefused) assert.equal(type, "application/problem+json");
  if (!isRefused && typeof route?.answer !== "string") return;
  const name = isRefused ? "Problem" : String(route?.answer);
  const validate = validators.get(name) ?? ajv.compile({ $ref: `api#/components/schemas/${name}` });
  validators.set(name, validate);
  assert.ok(validate(json), `${call}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(json)}`);
}

function patternOf(key: string): RegExp {
  return new RegExp(`^${key.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
}
