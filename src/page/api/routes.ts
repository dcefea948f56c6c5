import { jsonPage, problemPage } from "../answer.ts";
import { openApi } from "./openapi.ts";
import type { ApiRequest, ApiRoute } from "./route.ts";
import { sendEvents } from "./send-events.ts";
import { sendLog } from "./send-log.ts";

const page = {
  limit: "how many, 1 to 1,000",
  before: "only deployments with a lower number: `next` of the answer before",
  state: "only those in this state",
} as const;

export const apiRoutes: Readonly<Record<string, ApiRoute>> = {
  "GET /api/openapi.json": {
    ...{ summary: "This document", right: null, status: 200, answer: ["application/json"] },
    handle: async () => jsonPage(openApi(apiRoutes)),
  },
  "GET /api/visitor": {
    ...{ summary: "Who asks, and what they may do", right: "read", status: 200, answer: "Visitor" },
    handle: ask(() => "/visitor"),
  },
  "GET /api/projects": {
    ...{ summary: "All projects, and what is live of each", right: "read", status: 200, answer: "Projects" },
    handle: ask(() => "/projects"),
  },
  "GET /api/projects/{project}/deployments": {
    ...{ summary: "The deployments of a project, the newest first", right: "read", status: 200 },
    ...{ answer: "Deployments", query: page },
    handle: ask(({ parameters, query }) => `/deployments?${listed(query, parameters)}`),
  },
  "GET /api/projects/{project}/doctor": {
    ...{ summary: "What the doctor has found; ask again while `isRunning`", right: "read", status: 200 },
    ...{ answer: "Examination", handle: ask(({ parameters }) => `/doctor?${projectIn(parameters)}`) },
  },
  "GET /api/deployments": {
    ...{ summary: "The deployments of all projects, the newest first", right: "read", status: 200 },
    ...{ answer: "Deployments", query: page },
    handle: ask(({ query }) => `/deployments?${listed(query, {})}`),
  },
  "GET /api/deployments/{id}": {
    ...{ summary: "One deployment with its steps", right: "read", status: 200, answer: "OneDeployment" },
    handle: ask(({ parameters }) => `/deployments/${parameters.id}`),
  },
  "GET /api/deployments/{id}/log": {
    ...{ summary: "What its script has printed, or a part of it", right: "read", status: 200 },
    answer: ["text/plain", "application/x-ndjson"],
    query: {
      from: "only lines that begin at this byte or after it",
      to: "only lines that begin before this byte",
      find: "only lines with this text, in upper or lower case",
      format:
        "`text`; `ndjson`: an event per line; `timed`: `<time> <text>` per line, byte by byte as it is kept",
    },
    handle: sendLog,
  },
  "GET /api/deployments/{id}/events": {
    ...{
      summary: "What happens, as server-sent events; `Last-Event-ID` goes on after a line",
      right: "read",
    },
    ...{
      status: 200,
      answer: ["text/event-stream"],
      query: { from: "as Last-Event-ID: the place in the log after the last line that is known" },
    },
    handle: sendEvents,
  },
  "POST /api/projects/{project}/deployments": {
    ...{ summary: "Deploy the branch as it is at the git host now", right: "deploy", status: 202 },
    ...{ answer: "Requested", body: { ref: "main or master; default: the one deployed last" } },
    handle: act(({ parameters }) => `/deployments?${projectIn(parameters)}`),
  },
  "POST /api/projects/{project}/rollback": {
    ...{ summary: "Go back to an earlier good version", right: "deploy", status: 202, answer: "Requested" },
    body: { version: "the number of a deployment, or a commit; default: the version before" },
    handle: act(({ parameters }) => `/rollback?${projectIn(parameters)}`),
  },
  "POST /api/deployments/{id}/cancel": {
    ...{
      summary: "Cancel a deployment that waits or runs",
      right: "deploy",
      status: 202,
      answer: "Requested",
    },
    handle: act(({ parameters }) => `/deployments/${parameters.id}/cancel`),
  },
  "POST /api/projects/{project}/pause": {
    ...{ summary: "Hold the queue of a project", right: "deploy", status: 200, answer: "Paused" },
    body: { reason: "why" },
    handle: act(({ parameters }) => `/pause?${projectIn(parameters)}`),
  },
  "POST /api/projects/{project}/resume": {
    ...{ summary: "Let the queue of a project go on", right: "deploy", status: 200, answer: "Paused" },
    handle: act(({ parameters }) => `/resume?${projectIn(parameters)}`),
  },
};

type PathOf = (request: ApiRequest) => string;

function ask(pathOf: PathOf): ApiRoute["handle"] {
  return async ({ run }, request) => {
    const answer = await run.call(request.visit, "GET", pathOf(request));
    return answer.kind === "refused" ? problemPage(answer) : jsonPage(answer.value, answer.status);
  };
}

function act(pathOf: PathOf): ApiRoute["handle"] {
  return async ({ run }, request) => {
    const { visit, body, headers } = request;
    const key = headers["idempotency-key"];
    const own = typeof key === "string" ? { "idempotency-key": key } : {};
    const answer = await run.call(visit, "POST", pathOf(request), body, own);
    return answer.kind === "refused" ? problemPage(answer) : jsonPage(answer.value, answer.status);
  };
}

function projectIn({ project = "" }: ApiRequest["parameters"]): string {
  return String(new URLSearchParams({ project }));
}

function listed(query: URLSearchParams, { project }: ApiRequest["parameters"]): string {
  const wanted = new URLSearchParams(project === undefined ? {} : { project });
  for (const name of Object.keys(page)) {
    const value = query.get(name);
    if (value !== null) wanted.set(name, value);
  }
  return String(wanted);
}
