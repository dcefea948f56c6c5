import type {
  DeploymentJson,
  ExaminationJson,
  HistoryJson,
  LogPageJson,
  OneDeploymentJson,
  ProjectJson,
  SessionJson,
  StepJson,
} from "../calls/shapes.ts";
import { htmlPage, type PageAnswer } from "./answer.ts";
import type { Refused, RunAnswer, RunClient, Visit } from "./run-client.ts";
import { deploymentScreen } from "./screens/deployment.ts";
import { doctorScreen } from "./screens/doctor.ts";
import { projectScreen } from "./screens/project.ts";
import { type ProjectCard, projectsScreen } from "./screens/projects.ts";
import { refusalScreen } from "./screens/refusal.ts";
import { renderScreen, type Screen } from "./screens/screen.ts";
import { sessionsScreen } from "./screens/sessions.ts";
import { linkScreen, signInScreen } from "./screens/sign-in.ts";
import { shownCommit } from "./screens/words.ts";
import { findViewer, type KnownVisitor } from "./visitor.ts";

type Read = (path: string) => Promise<RunAnswer>;

/** A request for a screen. */
export interface ScreenRequest {
  readonly run: RunClient;
  readonly visit: Visit;
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Shows the screen at a path, or that of signing in. */
export async function showScreen(request: ScreenRequest): Promise<PageAnswer> {
  const { run, visit, path, query } = request;
  if (path === "/sign-in") return await show(linkScreen(query.get("link") ?? ""));
  if (visit.credential === null) return await show(signInScreen(null), 401);
  const known = await findViewer(run, visit);
  if (known.kind === "refused") return await showRefusal(null, known);
  const read: Read = (wanted) => run.call(visit, "GET", wanted);
  const screen = await findScreen(known, { ...request, read });
  return "kind" in screen ? await showRefusal(known, screen) : await show(screen);
}

export async function show(screen: Screen, status = 200): Promise<PageAnswer> {
  return htmlPage(await renderScreen(screen), status);
}

export function showRefusal(
  known: KnownVisitor | null,
  refused: Pick<Refused, "status" | "detail">,
): Promise<PageAnswer> {
  const { status } = refused;
  return show(status === 401 ? signInScreen(null) : refusalScreen(known?.viewer ?? null, refused), status);
}

interface Wanted extends ScreenRequest {
  readonly read: Read;
}

type Found = Promise<Screen | Refused>;

const nothingHere: Refused = {
  kind: "refused",
  status: 404,
  code: "not_found",
  detail: "It may have been removed, or the address is wrong.",
};

/** A name or a number of these shapes cannot change the path on the other side. */
const [projectPath, doctorPath, deploymentPath] = [
  /^\/projects\/([a-z0-9][a-z0-9-]{0,38})$/,
  /^\/projects\/([a-z0-9][a-z0-9-]{0,38})\/doctor$/,
  /^\/deployments\/(\d{1,15})$/,
];

async function findScreen(known: KnownVisitor, request: Wanted): Found {
  const { path } = request;
  if (path === "/") return await findProjects(known, request);
  if (path === "/sessions") return await findSessions(known, request);
  const [, project] = projectPath.exec(path) ?? [];
  if (project !== undefined) return await findProject(known, request, project);
  const [, examined] = doctorPath.exec(path) ?? [];
  if (examined !== undefined) return await findExamination(known, request, examined);
  const [, id] = deploymentPath.exec(path) ?? [];
  return id === undefined ? nothingHere : await findDeployment(known, request, id);
}

async function findProjects({ viewer }: KnownVisitor, { read }: Wanted): Found {
  const found = await listProjects(read);
  if ("kind" in found) return found;
  return projectsScreen(viewer, await Promise.all(found.map((project) => cardOf(read, project))));
}

async function listProjects(read: Read): Promise<readonly ProjectJson[] | Refused> {
  const answer = await read("/projects");
  return answer.kind === "refused" ? answer : (answer.value as { projects: readonly ProjectJson[] }).projects;
}

const barsOfCard = 24;

async function cardOf(read: Read, project: ProjectJson): Promise<ProjectCard> {
  const { last, isServed, name } = project;
  const isRunning = last?.state === "running";
  const [history, one] = await Promise.all([
    isServed ? read(`/deployments?project=${name}&limit=${barsOfCard}`) : null,
    isRunning ? read(`/deployments/${last.id}`) : null,
  ]);
  const deployments = history?.kind === "ok" ? (history.value as HistoryJson).deployments : [];
  const good = isRunning ? deployments.find(({ state }) => state === "succeeded") : undefined;
  const known = good && (await read(`/deployments/${good.id}`));
  return { project, deployments, steps: stepsIn(one), usualSteps: stepsIn(known ?? null) };
}

function stepsIn(answer: RunAnswer | null): readonly StepJson[] {
  return answer?.kind === "ok" ? (answer.value as OneDeploymentJson).steps : [];
}

/** The good version before a deployment; null if there was none. */
async function goodBefore(read: Read, { id, project }: DeploymentJson): Promise<DeploymentJson | null> {
  const query = `project=${encodeURIComponent(project)}&before=${id}&state=succeeded&limit=1`;
  const answer = await read(`/deployments?${query}`);
  return answer.kind === "ok" ? ((answer.value as HistoryJson).deployments[0] ?? null) : null;
}

const entriesOnScreen = 50;
const barsOfProject = 60;

async function findProject({ viewer }: KnownVisitor, { read, query }: Wanted, name: string): Found {
  const wanted = new URLSearchParams({ project: name, limit: String(entriesOnScreen) });
  for (const key of ["before", "state"]) if (query.get(key)) wanted.set(key, query.get(key) ?? "");
  const [projects, history, recent] = await Promise.all([
    listProjects(read),
    read(`/deployments?${wanted}`),
    read(`/deployments?project=${name}&limit=${barsOfProject}`),
  ]);
  if ("kind" in projects) return projects;
  const project = projects.find((one) => one.name === name);
  if (project === undefined) return nothingHere;
  if (history.kind === "refused") return history;
  if (recent.kind === "refused") return recent;
  return projectScreen(viewer, {
    ...{ project, history: history.value as HistoryJson, state: query.get("state") },
    recent: (recent.value as HistoryJson).deployments,
    isFirstPage: !query.has("before"),
  });
}

async function findDeployment({ viewer }: KnownVisitor, { read, query }: Wanted, id: string): Found {
  const [projects, answer] = await Promise.all([listProjects(read), read(`/deployments/${id}`)]);
  if (answer.kind === "refused") return answer;
  if ("kind" in projects) return projects;
  const one = answer.value as OneDeploymentJson;
  const to = query.get("to");
  const [log, good] = await Promise.all([
    read(`/deployments/${id}/log/page${to === null ? "" : `?to=${encodeURIComponent(to)}`}`),
    goodBefore(read, one.deployment),
  ]);
  if (log.kind === "refused") return log;
  const project = projects.find(({ name }) => name === one.deployment.project) ?? null;
  return deploymentScreen(viewer, {
    ...{ ...one, project, log: log.value as LogPageJson },
    before: good && shownCommit(good),
  });
}

async function findExamination({ viewer }: KnownVisitor, { read }: Wanted, project: string): Found {
  const answer = await read(`/projects/${project}/doctor`);
  return answer.kind === "refused" ? answer : doctorScreen(viewer, answer.value as ExaminationJson);
}

async function findSessions({ viewer, sessionId }: KnownVisitor, { read }: Wanted): Found {
  const answer = await read("/sessions");
  if (answer.kind === "refused") return answer;
  const { sessions } = answer.value as { sessions: readonly SessionJson[] };
  return sessionsScreen(viewer, sessions, sessionId);
}
