import { join } from "node:path";
import { sendHttp } from "../../platform/http.ts";
import { namesInLiveFiles } from "./live-file.ts";

/** Caddy's admin API is on this socket in the live directory (`admin unix//run/live/admin.sock`), never on a port. */
const socketName = "admin.sock";
const answerTimeoutMs = 5_000;

export interface InFlight {
  /** Requests to the containers that were asked for. */
  readonly count: number;
  /**
   * Requests to containers that a live file named when they came, counted under no container's name. Before 2.11.2,
   * Caddy counts only these (https://github.com/caddyserver/caddy/pull/7517). Later versions count each request both
   * ways, except those that came while the file named the service itself.
   */
  readonly unnamed: number;
}

/**
 * How many requests Caddy has in flight to the containers `names`. See
 * https://caddyserver.com/docs/api#get-reverse-proxyupstreams
 *
 * @returns null if Caddy does not answer
 */
export async function requestsInFlight(
  directory: string,
  names: readonly string[],
): Promise<InFlight | null> {
  const answer = await get(directory, "/reverse_proxy/upstreams");
  if (answer === null) return null;
  const upstreams: readonly Upstream[] = JSON.parse(answer) ?? [];
  const byFile = upstreams.filter(({ address }) => address.startsWith("{file."));
  // Excludes upstreams that the Caddyfile names itself, such as another service: no live file counts their
  // requests.
  const known = new Set([...names, ...(await namesInLiveFiles(directory))]);
  const byName = upstreams.filter(({ address }) => known.has(hostOf(address)));
  const mine = byName.filter(({ address }) => names.includes(hostOf(address)));
  return { count: total(mine), unnamed: Math.max(0, total(byFile) - total(byName)) };
}

function hostOf(address: string): string {
  return address.replace(/:\d+$/, "");
}

interface Upstream {
  readonly address: string;
  readonly num_requests: number;
}

function total(upstreams: readonly Upstream[]): number {
  return upstreams.reduce((sum, { num_requests }) => sum + num_requests, 0);
}

/**
 * The live files that Caddy's configuration reads (`{file./run/live/app}` → `app`).
 *
 * @returns null if Caddy does not answer
 */
export async function liveFilesRead(directory: string): Promise<ReadonlySet<string> | null> {
  const answer = await get(directory, "/config/");
  if (answer === null) return null;
  return new Set([...answer.matchAll(/\{file\.[^}]*\/([^/}]+)\}/g)].map(([, file]) => file ?? ""));
}

async function get(directory: string, path: string): Promise<string | null> {
  const target = { socketPath: join(directory, socketName), path };
  // Caddy refuses an Origin that it does not know. It accepts this host without an Origin.
  const headers = { host: "localhost" };
  const answer = await sendHttp(target, { headers, timeoutMs: answerTimeoutMs }).catch(() => null);
  return answer?.status === 200 ? answer.body.toString() : null;
}
