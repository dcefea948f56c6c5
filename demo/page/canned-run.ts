import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import type { DeploymentJson, LineJson } from "../../src/calls/shapes.ts";
import { refuse } from "../../src/calls/table.ts";
import { shortCommit } from "../../src/deployments/push.ts";
import type { RunClient } from "../../src/front/page/run-client.ts";
import { cannedServer, cannedSteps } from "./canned.ts";
import { cannedLog } from "./log.ts";

/** Answers as `hotpush run` would. */
export function cannedRun(): RunClient {
  const server = cannedServer();
  const all = server.flatMap(({ deployments }) => deployments).sort((one, other) => other.id - one.id);
  const find = (path: string) => all.find(({ id }) => id === Number(/^\/deployments\/(\d+)/.exec(path)?.[1]));

  function answer(path: string): object | null {
    const { pathname, searchParams: query } = new URL(path, "http://run");
    if (pathname === "/visitor") return { name: "Ada Park", kind: "session", role: "operator", id: 7 };
    if (pathname === "/projects") return { projects: server.map(({ project }) => project) };
    if (pathname === "/deployments") return listed(all, query);
    const deployment = find(pathname);
    if (deployment === undefined) return null;
    return { deployment, steps: cannedSteps(deployment), logBytes: linesOf(deployment).at(-1)?.endByte ?? 0 };
  }

  return {
    call: async (_visit, { path }) => answer(path) ?? refuse("not_found", "There is no such deployment."),
    async open(_visit, path) {
      const deployment = find(path) ?? refuse("not_found", "There is no log.");
      return streamOf(path.includes("/events") ? eventsOf(deployment) : timedLogOf(deployment));
    },
  };
}

function listed(all: readonly DeploymentJson[], query: URLSearchParams) {
  const project = query.get("project");
  const state = query.get("state");
  const before = Number(query.get("before") ?? Infinity);
  const limit = Number(query.get("limit") ?? 20);
  const found = all.filter(
    (one) => (!project || one.project === project) && (!state || one.state === state) && one.id < before,
  );
  const deployments = found.slice(0, limit);
  return { deployments, next: found.length > limit ? (deployments.at(-1)?.id ?? null) : null };
}

/** What its script printed, each line within the time of its step. */
function linesOf(deployment: DeploymentJson): readonly LineJson[] {
  const { state, project, commit, requests } = deployment;
  const texts = cannedLog(state === "failed", {
    project,
    commit: shortCommit(commit),
    requests: requests?.[0]?.requests ?? 0,
  });
  const steps = cannedSteps(deployment);
  let endByte = 0;
  let stepIndex = -1;
  let inStep = 0;
  return texts.map((line) => {
    if (line.startsWith("==> ")) [stepIndex, inStep] = [stepIndex + 1, 0];
    const { startedAt = deployment.createdAt, durationMs = null } = steps[stepIndex] ?? {};
    const atMs = Date.parse(startedAt) + (durationMs ?? 3_000) * (1 - 0.8 ** inStep++);
    const printedAt = new Date(atMs).toISOString();
    endByte += Buffer.byteLength(`${printedAt} ${line}\n`);
    return { event: "line", line, endByte, printedAt };
  });
}

/** The log as its file has it. */
function timedLogOf(deployment: DeploymentJson): string {
  return linesOf(deployment)
    .map(({ printedAt, line }) => `${printedAt} ${line}\n`)
    .join("");
}

/** The log as `hotpush run` sends it to browsers that follow it. */
function eventsOf(deployment: DeploymentJson): string {
  const events = [...linesOf(deployment), { event: "deployment", deployment }];
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
}

function streamOf(text: string): IncomingMessage {
  const message = new IncomingMessage(new Socket());
  message.headers["content-type"] = text.startsWith("data: ") ? "text/event-stream" : "text/plain";
  message.push(text);
  message.push(null);
  return message;
}
