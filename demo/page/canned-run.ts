import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import type { DeploymentJson } from "../../src/control/deployment-json.ts";
import type { RunAnswer, RunClient } from "../../src/page/run-client.ts";
import { cannedServer, cannedSteps } from "./canned.ts";
import { cannedLog } from "./log.ts";

/** Answers as `hotpush run` would. */
export function cannedRun(): RunClient {
  const server = cannedServer();
  const all = server.flatMap(({ deployments }) => deployments).sort((one, other) => other.id - one.id);

  function answer(path: string): object | null {
    const { pathname, searchParams: query } = new URL(path, "http://run");
    if (pathname === "/visitor")
      return { name: "Ada Park", kind: "session", rights: ["read", "deploy"], id: 7 };
    if (pathname === "/projects") return { projects: server.map(({ project }) => project) };
    if (pathname === "/sessions") return { sessions: cannedSessions() };
    if (pathname === "/deployments") return page(all, query);
    const one = all.find(({ id }) => pathname === `/deployments/${id}`);
    return one
      ? {
          deployment: one,
          steps: cannedSteps(one, one.state === "running" ? 3 : undefined),
          logBytes: cannedLog.length,
        }
      : null;
  }

  return {
    async call(_visit, _method, path): Promise<RunAnswer> {
      const value = answer(path);
      if (value !== null) return { kind: "ok", status: 200, value };
      return { kind: "refused", status: 404, detail: "There is no such deployment." };
    },
    open: async (_visit, path) => streamOf(path.includes("/events") ? events(path) : cannedLog),
  };
}

function page(all: readonly DeploymentJson[], query: URLSearchParams) {
  const [project, state] = [query.get("project"), query.get("state")];
  const [before, limit] = [Number(query.get("before") ?? Infinity), Number(query.get("limit") ?? 20)];
  const found = all.filter(
    (one) => (!project || one.project === project) && (!state || one.state === state) && one.id < before,
  );
  const deployments = found.slice(0, limit);
  return { deployments, next: found.length > limit ? (deployments.at(-1)?.id ?? null) : null };
}

function cannedSessions() {
  const times = { createdAt: new Date(Date.now() - 9e8).toISOString(), lastSeenAt: new Date().toISOString() };
  const older = { ...times, lastSeenAt: new Date(Date.now() - 3e8).toISOString() };
  return [
    {
      id: 7,
      address: "192.0.2.14",
      agent: "Mozilla/5.0 (X11; Linux x86_64; rv:141.0) Firefox/141.0",
      ...times,
    },
    {
      id: 4,
      address: "198.51.100.3",
      agent: "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0) Safari/604.1",
      ...older,
    },
  ];
}

/** The log as `hotpush run` sends it to who follows. */
function events(path: string): string {
  const id = Number(/\d+/.exec(path)?.[0]);
  const found = cannedServer()
    .flatMap(({ deployments }) => deployments)
    .find((one) => one.id === id);
  let endByte = 0;
  const lines = cannedLog
    .trimEnd()
    .split("\n")
    .map((line) => {
      endByte += Buffer.byteLength(line) + 1;
      return {
        event: "line",
        line,
        endByte,
        printedAt: new Date(Date.parse(found?.startedAt ?? "") + endByte * 10).toISOString(),
      };
    });
  const all = [
    { event: "deployment", deployment: found },
    ...lines,
    { event: "deployment", deployment: found },
  ];
  return all.map((event) => `${JSON.stringify(event)}\n`).join("");
}

function streamOf(text: string): IncomingMessage {
  const message = new IncomingMessage(new Socket());
  message.push(text);
  message.push(null);
  return message;
}
