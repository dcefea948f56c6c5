import type { DeploymentJson } from "#calls/shapes";
import { findCall } from "#calls/table";
import { type PageAnswer, seeOther } from "./answer.ts";
import { isFormToken, sessionCookie } from "./cookie.ts";
import type { RunClient, Visit } from "./run-client.ts";
import { signInScreen } from "./screens/sign-in.ts";
import type { PageSettings } from "./settings.ts";
import { show, showRefusal } from "./site.ts";
import { findViewer, type KnownVisitor } from "./visitor.ts";

/** A form that a browser sent. */
export interface FormRequest {
  readonly run: RunClient;
  readonly visit: Visit;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly settings: PageSettings;
}

const elsewhere = {
  status: 403,
  detail: "This form was not sent from this page. Load the page again, and try again.",
};

/**
 * Does what a form asks for, if it comes from this page, and shows at once what it has started.
 *
 * @param readFields called once who has sent it is known
 */
export async function takeForm(
  request: FormRequest,
  readFields: () => Promise<URLSearchParams>,
): Promise<PageAnswer> {
  const { run, visit, path } = request;
  if (!isFromHere(request)) return await showRefusal(null, elsewhere);
  if (path === "/sign-in") return await signIn(request, await readFields());
  if (visit.credential === null) return await show(signInScreen(null), 401);
  const known = await findViewer(run, visit);
  if (known.kind === "refused") return await showRefusal(null, known);
  const fields = await readFields();
  if (!isFormToken(fields.get("token") ?? "", visit.credential)) return await showRefusal(known, elsewhere);
  if (path === "/sign-out") return await signOut(request, fields, known);
  return await act(request, fields, known);
}

/** A browser says where a form comes from, and no page can make it lie. Without a word from it, it is refused. */
function isFromHere({ headers, settings }: FormRequest): boolean {
  const { origin, "sec-fetch-site": site } = headers;
  const fits = [
    ...(site === undefined ? [] : [site === "same-origin"]),
    ...(origin === undefined ? [] : [origin === settings.url.origin]),
  ];
  return fits.length > 0 && fits.every(Boolean);
}

/** The session is always a new one; what the browser had before is forgotten. */
async function signIn({ run, visit, settings }: FormRequest, fields: URLSearchParams): Promise<PageAnswer> {
  const answer = await run.call({ ...visit, credential: null }, "POST", "/sessions", {
    link: fields.get("link") ?? "",
  });
  if (answer.kind === "refused") return await show(signInScreen(answer.detail), answer.status);
  const { session } = answer.value as { session: string };
  return seeOther("/", { "set-cookie": sessionCookie(session, settings) });
}

async function signOut(
  { run, visit, settings }: FormRequest,
  fields: URLSearchParams,
  known: KnownVisitor,
): Promise<PageAnswer> {
  const id = Number(fields.get("id") ?? known.sessionId);
  const answer = await run.call(visit, "POST", "/sign-out", { id });
  if (answer.kind === "refused") return await showRefusal(known, answer);
  if (id !== known.sessionId) return seeOther("/sessions");
  return seeOther("/", { "set-cookie": sessionCookie(null, settings) });
}

async function act(
  { run, visit, path }: FormRequest,
  fields: URLSearchParams,
  known: KnownVisitor,
): Promise<PageAnswer> {
  // A form is at the path of its call.
  const found = findCall("POST", path);
  if (found?.row.right !== "operator")
    return await showRefusal(known, { status: 404, detail: "There is no such form." });
  const body = Object.fromEntries([...fields].filter(([name, value]) => name !== "token" && value !== ""));
  const answer = await run.call(visit, "POST", path, body);
  if (answer.kind === "refused") return await showRefusal(known, answer);
  const { deployment } = answer.value as { readonly deployment?: DeploymentJson };
  return seeOther(deployment ? `/deployments/${deployment.id}` : `/projects/${found.parameters.project}`);
}
