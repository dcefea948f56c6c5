import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { findCall } from "#calls/table";
import { projectNamePattern } from "#config/server";
import { readText } from "#platform/http-server";
import { type HttpProblemCode, type Problem, ProblemError, problems } from "#problems";
import { htmlPage, longestBodyBytes, type PageAnswer, seeOther } from "./answer.ts";
import type { RunClient, Visit } from "./run-client.ts";
import { findDeployment } from "./screens/deployment.ts";
import { findProject } from "./screens/project.ts";
import { findProjects } from "./screens/projects.ts";
import { ask, nothingHere, renderScreen, type Screen, type Visitor, type Wanted } from "./screens/screen.ts";
import { findServiceLog } from "./screens/service-log.ts";
import { accountScreen, linkScreen, refusalScreen, signInScreen } from "./screens/sign-in.ts";

/** A name or a number of these shapes cannot change the path on the other side. */
const screens: readonly (readonly [RegExp, (wanted: Wanted, named: string) => Screen | Promise<Screen>])[] = [
  [/^\/$/, findProjects],
  [/^\/account$/, ({ visitor }) => accountScreen(visitor)],
  [new RegExp(`^/projects/(${projectNamePattern})$`), findProject],
  [new RegExp(`^/projects/(${projectNamePattern})/logs$`), findServiceLog],
  [/^\/deployments\/(\d{1,15})$/, findDeployment],
];

/** Shows the screen at a path, or that of signing in. */
export async function showScreen(asked: Omit<Wanted, "visitor">): Promise<PageAnswer> {
  const { run, visit, path, query } = asked;
  if (path === "/sign-in") return await show(linkScreen(query.get("link") ?? ""));
  return await showing(run, visit, async (visitor) => {
    for (const [pattern, find] of screens) {
      const found = pattern.exec(path);
      if (found !== null) return await show(await find({ ...asked, visitor }, found[1] ?? ""));
    }
    return nothingHere();
  });
}

/** Answers somebody who is signed in, and shows what is refused. */
async function showing(
  run: RunClient,
  visit: Visit,
  answer: (visitor: Visitor) => Promise<PageAnswer>,
): Promise<PageAnswer> {
  let visitor: Visitor | null = null;
  try {
    if (visit.credential === null) return await show(signInScreen(null), 401);
    const { name, role } = await ask(run, visit, "visitor", {});
    visitor = { name, isOperator: role === "operator", token: formToken(visit.credential) };
    return await answer(visitor);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { code, detail } = error.problem as Problem<HttpProblemCode>;
    const { status } = problems[code];
    return await show(status === 401 ? signInScreen(null) : refusalScreen(visitor, status, detail), status);
  }
}

async function show(screen: Screen, status = 200): Promise<PageAnswer> {
  return htmlPage(await renderScreen(screen), status);
}

/** A form that a browser sent. */
export interface FormRequest extends Pick<Wanted, "run" | "visit" | "path"> {
  readonly request: IncomingMessage;
  /** That of the page. */
  readonly origin: string;
  readonly cookieName: string;
}

/** Does what a form asks for, if it comes from this page, and shows at once what it has started. */
export async function takeForm(form: FormRequest): Promise<PageAnswer> {
  const { request, run, visit, path } = form;
  if (!isFromHere(form)) return await show(refusalScreen(null, 403, elsewhere), 403);
  if (path === "/sign-in") return await signIn(form, await readFields(request));
  return await showing(run, visit, async (visitor) => {
    // Only now: the body of somebody whom `run` does not know could take long to come.
    const fields = await readFields(request);
    if (!isFormToken(fields.get("token") ?? "", visit.credential ?? ""))
      return await show(refusalScreen(visitor, 403, elsewhere), 403);
    if (path === "/sign-out") {
      await ask(run, visit, "signOut", {});
      return seeOther("/", { "set-cookie": sessionCookie(null, form) });
    }
    // A form is at the path of its call.
    const found = findCall("POST", path);
    if (found?.row.right !== "operator") return nothingHere();
    const body = Object.fromEntries([...fields].filter(([name, value]) => name !== "token" && value !== ""));
    const answer = await run.call(visit, { method: "POST", path, body: JSON.stringify(body) });
    const { deployment } = answer as { readonly deployment?: { readonly id: number } };
    return seeOther(deployment ? `/deployments/${deployment.id}` : `/projects/${found.parameters.project}`);
  });
}

const elsewhere = "This form was not sent from this page. Load the page again, and try again.";

/** A browser says where a form comes from, and no page can make it lie. Without a word from it, it is refused. */
function isFromHere({ request, origin: own }: FormRequest): boolean {
  const { origin, "sec-fetch-site": site } = request.headers;
  if (origin === undefined && site === undefined) return false;
  return (site ?? "same-origin") === "same-origin" && (origin ?? own) === own;
}

async function readFields(request: IncomingMessage): Promise<URLSearchParams> {
  return new URLSearchParams((await readText(request, longestBodyBytes)) ?? "");
}

/** The session is always a new one; what the browser had before is forgotten. */
async function signIn(form: FormRequest, fields: URLSearchParams): Promise<PageAnswer> {
  const { run, visit } = form;
  const link = fields.get("link") ?? "";
  try {
    const { session } = await ask(run, { ...visit, credential: null }, "signIn", { link });
    return seeOther("/", { "set-cookie": sessionCookie(session, form) });
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { code, detail } = error.problem as Problem<HttpProblemCode>;
    const { status } = problems[code];
    // Nobody has looked at the link, so it is as good as before.
    if (status >= 500) return await show(linkScreen(link, detail), status);
    return await show(signInScreen(detail), 401);
  }
}

/** A browser stays signed in as long as `run` says, which visits extend. This only keeps the cookie, as long as browsers do. */
const keptSeconds = 400 * 24 * 3_600;

/** @param session null: the browser forgets it */
function sessionCookie(session: string | null, { cookieName, origin }: FormRequest): string {
  const secure = origin.startsWith("http:") ? "" : "; Secure";
  const age = session === null ? 0 : keptSeconds;
  return `${cookieName}=${session ?? ""}; Path=/; HttpOnly; SameSite=Lax${secure}; Max-Age=${age}`;
}

/** What a form carries, so that it can only have come from a page that this session was shown. */
function formToken(session: string): string {
  return createHmac("sha256", session).update("form").digest("base64url");
}

function isFormToken(token: string, session: string): boolean {
  const given = Buffer.from(token);
  const expected = Buffer.from(formToken(session));
  return given.length === expected.length && timingSafeEqual(given, expected);
}
