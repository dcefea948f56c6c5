import { join } from "node:path";
import { callRun } from "../../src/calls/client.ts";
import { sendHttp } from "../../src/platform/http.ts";
import { withShortPath } from "../../src/platform/listen.ts";
import type { RunningService } from "./service.ts";

type Service = Pick<RunningService, "statePath">;

/** A call such as `GET /projects` over the page's socket. */
export interface PageCall {
  readonly credential: string | null;
  readonly body?: object;
  readonly address?: string;
}

/** Calls as `hotpush page` does. */
export function callAsPage({ statePath }: Service, call: string, { credential, body, address }: PageCall) {
  const [method = "", path = ""] = call.split(" ");
  const authorization = credential === null ? {} : { authorization: `Bearer ${credential}` };
  const headers = { ...authorization, "x-visitor-address": address ?? "192.0.2.7" };
  const request = { method, headers, ...(method === "POST" && { body: JSON.stringify(body ?? {}) }) };
  return withShortPath(join(statePath, "front.sock"), (socketPath) =>
    sendHttp({ socketPath, path }, request),
  );
}

/** @returns the secret of a link */
export async function makeSignInLink(
  { statePath }: Service,
  { name = "Ann", role = "operator" }: { readonly name?: string; readonly role?: "viewer" | "operator" } = {},
): Promise<string> {
  return (await callRun(statePath, "makeLink", { name, role })).link;
}

/** @returns the secret of a new session; null if the link opens none */
export async function openSession(service: Service, link: string, address?: string): Promise<string | null> {
  const call = { credential: null, body: { link }, ...(address && { address }) };
  const { status, body } = await callAsPage(service, "POST /sessions", call);
  return status === 200 ? (JSON.parse(String(body)) as { session: string }).session : null;
}
