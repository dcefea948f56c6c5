import type { IncomingMessage } from "node:http";
import { ProblemError } from "../problems.ts";
import {
  endSession,
  endToken,
  makeSignInLink,
  makeToken,
  showAudit,
  showSessions,
  showTokens,
} from "./access.ts";
import { findContext, mustNameProject } from "./contexts.ts";
import { showExamination } from "./doctor.ts";
import { followDeployment } from "./follow.ts";
import { showDeployment, showHistory } from "./history.ts";
import { holdDeployments } from "./hold.ts";
import { showLog, showTimes } from "./log.ts";
import { showMetrics } from "./metrics.ts";
import { testNotifications } from "./notify.ts";
import { pauseProject, resumeProject } from "./pause.ts";
import { showProjects } from "./projects.ts";
import { cancelDeployment, deployNow, requestRollback } from "./requests.ts";
import {
  type ControlReply,
  type ControlRequest,
  type ControlSources,
  type Route,
  refusal,
  type WholeRoute,
} from "./route.ts";
import { showHealth, showStatus, showWholeStatus } from "./status.ts";

/** `{id}` is a number, or `latest`. */
const routes: Readonly<Record<string, Route>> = {
  "GET /status": showStatus,
  "GET /deployments": showHistory,
  "GET /deployments/{id}": showDeployment,
  "GET /deployments/{id}/log": showLog,
  "GET /deployments/{id}/times": showTimes,
  "GET /deployments/{id}/events": followDeployment,
  "GET /doctor": showExamination,
  "POST /deployments": deployNow,
  "POST /deployments/{id}/cancel": cancelDeployment,
  "POST /rollback": requestRollback,
  "POST /pause": pauseProject,
  "POST /resume": resumeProject,
  "POST /notify/test": testNotifications,
};

/** What a request that names no project gets if there are several. */
const wholeRoutes: Readonly<Record<string, WholeRoute>> = {
  "GET /projects": showProjects,
  "GET /status": showWholeStatus,
  "GET /metrics": showMetrics,
  "GET /deployments": showHistory,
  "GET /health": showHealth,
  "POST /hold": holdDeployments,
  "POST /links": makeSignInLink,
  "GET /sessions": showSessions,
  "POST /sessions/revoke": endSession,
  "GET /tokens": showTokens,
  "POST /tokens": makeToken,
  "POST /tokens/revoke": endToken,
  "GET /audit": showAudit,
};

const longestBodyBytes = 16 * 1024;

/** What is asked for, apart from who asks. */
export interface Call {
  /** Such as `POST /deployments/{id}/cancel`. */
  readonly key: string;
  readonly id: number | null;
  readonly query: URLSearchParams;
}

export function readCall(request: IncomingMessage): Call {
  const { pathname, searchParams: query } = new URL(request.url ?? "/", "http://control");
  const [, word] = /^\/deployments\/(\d{1,15}|latest)(?=\/|$)/.exec(pathname) ?? [];
  const path = word === undefined ? pathname : pathname.replace(word, "{id}");
  const id = word === undefined || word === "latest" ? null : Number(word);
  return { key: `${request.method} ${path}`, id, query };
}

/**
 * Answers a call about one project, or about all.
 *
 * @param asker changes the body that the routes see, so that it says who asks
 */
export async function answerCall(
  request: IncomingMessage,
  sources: ControlSources,
  asker: (body: ControlRequest["body"]) => ControlRequest["body"] = (body) => body,
): Promise<ControlReply> {
  try {
    const call = readCall(request);
    const [route, wholeRoute] = [routes[call.key], wholeRoutes[call.key]];
    if (!route && !wholeRoute)
      return refusal(404, "This Hotpush does not know this request. Are both of the same version?");
    const body = await readRequestBody(request);
    if (body === null) return refusal(400, "The request body is not a JSON object, or is too large.");
    const asked = { ...call, body: asker(body) };
    const context = await findContext(sources, asked, wholeRoute === undefined);
    if (context !== null && "kind" in context) return context;
    if (context !== null && route) return await route(context, asked);
    return wholeRoute ? wholeRoute(sources, asked) : mustNameProject(sources);
  } catch (error) {
    if (error instanceof ProblemError) return refusal(409, error.message);
    const text = "A command failed because of a fault in Hotpush";
    sources.log.error({ event: "control.failed", err: error }, text);
    return refusal(500, "Hotpush could not answer because of an internal fault. See the log of the service.");
  }
}

/** The JSON object in the body, `{}` if the body is empty, null if it is neither. */
export async function readRequestBody(request: IncomingMessage): Promise<ControlRequest["body"] | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > longestBodyBytes) return null;
    chunks.push(chunk);
  }
  if (bytes === 0) return {};
  try {
    const value = JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
    return typeof value === "object" && value !== null ? (value as ControlRequest["body"]) : null;
  } catch {
    return null;
  }
}
