import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import type { DeploymentJson, ExaminationJson, LineJson, LogPageJson } from "../../src/calls/shapes.ts";
import { shortCommit } from "../../src/commit-names.ts";
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
    if (pathname === "/sessions") return { sessions: cannedSessions() };
    if (pathname === "/deployments") return listed(all, query);
    const [, examined] = /^\/projects\/([^/]+)\/doctor$/.exec(pathname) ?? [];
    if (examined !== undefined) return cannedExamination(examined);
    const deployment = find(pathname);
    if (deployment === undefined) return null;
    if (pathname.endsWith("/log/page"))
      return { lines: linesOf(deployment), firstNumber: 1, before: null, after: null } satisfies LogPageJson;
    return { deployment, steps: cannedSteps(deployment), logBytes: linesOf(deployment).at(-1)?.endByte ?? 0 };
  }

  return {
    async call(_visit, _method, path) {
      const value = answer(path);
      if (value !== null) return { kind: "ok", status: 200, value };
      return { kind: "refused", status: 404, code: "not_found", detail: "There is no such deployment." };
    },
    async open(_visit, path) {
      const deployment = find(path);
      if (deployment === undefined)
        return { kind: "refused", status: 404, code: "not_found", detail: "There is no log." };
      return streamOf(path.includes("/events") ? eventsOf(deployment) : timedLogOf(deployment));
    },
  };
}

function listed(all: readonly DeploymentJson[], query: URLSearchParams) {
  const [project, state] = [query.get("project"), query.get("state")];
  const [before, limit] = [Number(query.get("before") ?? Infinity), Number(query.get("limit") ?? 20)];
  const found = all.filter(
    (one) => (!project || one.project === project) && (!state || one.state === state) && one.id < before,
  );
  const deployments = found.slice(0, limit);
  return { deployments, next: found.length > limit ? (deployments.at(-1)?.id ?? null) : null };
}

function cannedSessions() {
  const [firefox, safari] = ["Mozilla/5.0 (X11; Linux x86_64) Firefox/141.0", "(iPhone; CPU) Safari/604.1"];
  const [now, days] = [Date.now(), 24 * 3_600_000];
  const at = (ms: number) => new Date(ms).toISOString();
  return [
    { id: 7, address: "192.0.2.14", agent: firefox, createdAt: at(now - 10 * days), lastSeenAt: at(now) },
    {
      id: 4,
      address: "198.51.100.3",
      agent: safari,
      createdAt: at(now - 19 * days),
      lastSeenAt: at(now - 3 * days),
    },
  ];
}

function cannedExamination(project: string): ExaminationJson {
  const change = `BRANCH=main in /etc/hotpush/projects/${project}.env`;
  const text = "BRANCH is not set: a branch called master would be deployed too.";
  const fault = { severity: "warning", text, command: null, change } as const;
  const check = { group: "Configuration", subject: "every variable has a usable value" } as const;
  const good = [
    ["Git", "git reaches the remote, and it has the branch", "main is at 05f0c69"],
    ["Docker", "Docker answers, and is new enough", "Docker 28.5 with compose 2.40"],
    ["Service", "the git host reaches the webhook", "a signed ping came back in 41 ms"],
  ].map(
    ([group = "", subject = "", fact = ""]) => ({ group, subject, fact, outcome: "ok", faults: [] }) as const,
  );
  return {
    ...{ project, isRunning: false, examinedAt: new Date(Date.now() - 20_000).toISOString() },
    report: {
      ...{ problems: 0, warnings: 1, passed: good.length, skipped: 0 },
      checks: [{ ...check, outcome: "faulty", fact: null, faults: [fault] }, ...good],
    },
  };
}

/** What its script printed, each line within the time of its step. */
function linesOf(deployment: DeploymentJson): readonly LineJson[] {
  const { state, project, commit, requests } = deployment;
  const texts = cannedLog(state === "failed", {
    ...{ project, commit: shortCommit(commit), requests: requests?.[0]?.requests ?? 0 },
  });
  const steps = cannedSteps(deployment);
  let [endByte, stepIndex, inStep] = [0, -1, 0];
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

/** The log as `hotpush run` sends it to readers who follow it. */
function eventsOf(deployment: DeploymentJson): string {
  const state = { event: "deployment", deployment };
  return [state, ...linesOf(deployment), state].map((event) => `${JSON.stringify(event)}\n`).join("");
}

function streamOf(text: string): IncomingMessage {
  const message = new IncomingMessage(new Socket());
  message.push(text);
  message.push(null);
  return message;
}
