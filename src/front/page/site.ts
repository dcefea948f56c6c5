import { htmlPage, type PageAnswer } from "./answer.ts";
import type { Refused } from "./run-client.ts";
import { findDeployment } from "./screens/deployment.ts";
import { findExamination } from "./screens/doctor.ts";
import { findProject } from "./screens/project.ts";
import { findProjects } from "./screens/projects.ts";
import {
  type Found,
  nothingHere,
  type Read,
  renderScreen,
  type Screen,
  type ScreenRequest,
  type Wanted,
} from "./screens/screen.ts";
import { findSessions } from "./screens/sessions.ts";
import { linkScreen, refusalScreen, signInScreen } from "./screens/sign-in.ts";
import { findViewer, type KnownVisitor } from "./visitor.ts";

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
