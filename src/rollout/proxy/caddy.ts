import { join } from "node:path";
import { sendHttp } from "../../platform/http-client.ts";
import { namesInLiveFiles } from "./live-file.ts";

/** Caddy's admin API is on this socket in the live directory (`admin unix//run/live/admin.sock`), never on a port. */
const socketName = "admin.sock";
const answerTimeoutMs = 5_000;

export interface InFlight {
  /** To the containers that were asked for. */
  readonly count: number;
  /**
   * To whatever a live file named when they came, and to no container by its name. Before 2.11.2 that is all that Caddy
   * counts (https://github.com/caddyserver/caddy/pull/7517); later ones count each request both ways, but for those that
   * came while the file named the service itself.
   */
  readonly unnamed: number;
}

/**
 * How many requests Caddy has under way to the containers `names`.
 * See https://caddyserver.com/docs/api#get-reverse-proxyupstreams
 *
 * @returns null where Caddy does not answer
 */
export async function requestsInFlight(
  directory: string,
  names: readonly string[],
): Promise<InFlight | null> {
  const answer = await get(directory, "/reverse_proxy/upstreams");
  if (answer === null) return null;
  const upstreams: readonly Upstream[] = JSON.parse(answer) ?? [];
  const byFile = upstreams.filter(({ address }) => address.startsWith("{file."));
  // Not what the Caddyfile names by itself, such as another service: its requests are in no live file's number.
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
 * @returns null where Caddy does not answer
 */
export async function liveFilesRead(directory: string): Promise<ReadonlySet<string> | null> {
  const answer = await get(directory, "/config/");
  if (answer === null) return null;
  return new Set([...answer.matchAll(/\{file\.[^}]*\/([^/}]+)\}/g)].map(([, file]) => file ?? ""));
}

async function get(directory: string, path: string): Promise<string | null> {
  const target = { socketPath: join(directory, socketName), path };
  // Caddy refuses an Origin it does not know; without that header, and with this host, it answers.
  const headers = { host: "localhost" };
  const answer = await sendHttp(target, { headers, timeoutMs: answerTimeoutMs }).catch(() => null);
  return answer?.status === 200 ? answer.body.toString() : null;
}
