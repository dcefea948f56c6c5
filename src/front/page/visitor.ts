import type { VisitorJson } from "#calls/shapes";
import { formToken } from "./cookie.ts";
import type { Refused, RunClient, Visit } from "./run-client.ts";
import type { Viewer } from "./screens/screen.ts";

export interface KnownVisitor {
  readonly kind: "visitor";
  readonly viewer: Viewer;
  readonly sessionId: number;
}

/** Asks `run` who a browser is. */
export async function findViewer(run: RunClient, visit: Visit): Promise<KnownVisitor | Refused> {
  const answer = await run.call(visit, "GET", "/visitor");
  if (answer.kind === "refused") return answer;
  const { name, role, id } = answer.value as VisitorJson;
  const viewer = { name, isOperator: role === "operator", token: formToken(visit.credential ?? "") };
  return { kind: "visitor", viewer, sessionId: id };
}
