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
import { type Call, readCall } from "./calls.ts";
import { findContext, mustNameProject } from "./contexts.ts";
import { showExamination } from "./doctor.ts";
import { followDeployment } from "./events.ts";
import { showDeployment, showHistory } from "./history.ts";
import { holdDeployments } from "./hold.ts";
import { showLog, showLogPage } from "./log.ts";
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
  "GET /deployments/{id}/log/page": showLogPage,
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

/** Answers a call about one project, or about all. */
export async function answerCall(request: IncomingMessage, sources: ControlSources): Promise<ControlReply> {
  const body = await readRequestBody(request);
  return body === null
    ? unreadable
    : await answerRead({ ...readCall(request.method, request.url), body }, sources);
}

export const unreadable = refusal(
  400,
  "The request body is not a JSON object of plain values, or is too large.",
);

/** As `answerCall`, for a request whose body was read. */
export async function answerRead(
  asked: ControlRequest & Call,
  sources: ControlSources,
): Promise<ControlReply> {
  const [route, wholeRoute] = [routes[asked.key], wholeRoutes[asked.key]];
  if (!route && !wholeRoute)
    return refusal(404, "This Hotpush does not know this request. Are both of the same version?");
  try {
    const context = await findContext(sources, asked, wholeRoute === undefined);
    if (context !== null && "kind" in context) return context;
    if (context !== null && route) return await route(context, asked);
    return wholeRoute ? wholeRoute(sources, asked) : mustNameProject(sources);
  } catch (error) {
    if (error instanceof ProblemError) return refusal(409, error.message);
    throw error;
  }
}

/** The JSON object in the body, `{}` if the body is empty; null if it is neither, or holds more than plain values. */
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
    return isPlain(value) ? value : null;
  } catch {
    return null;
  }
}

/** Anything else could throw when it is read as a text or a number. */
function isPlain(value: unknown): value is ControlRequest["body"] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((member) => typeof member !== "object" || member === null);
}
