import { posix } from "node:path";
import { liveMount, serviceAlias } from "../../config/machine-part.ts";
import { sendHttp } from "../../platform/http.ts";
import type { LiveDirectory } from "../context.ts";
import { requestsLog } from "../requests/caddy-lines.ts";
import { isLiveFileOf, readLiveFiles } from "./live-file.ts";

const answerTimeoutMs = 5_000;

export interface InFlight {
  /** Requests to the containers that were asked for. */
  readonly count: number;
  /**
   * Requests to the service that Caddy counts under no container's name. Before 2.11.2, these are all that a live file
   * directed (https://github.com/caddyserver/caddy/pull/7517). Later versions count each of those both ways, except
   * if the file named the service itself when it came. Added to them are requests that reached no container by the
   * live file, and went to the service's name on the machine part instead.
   */
  readonly unnamed: number;
}

/**
 * How many requests Caddy has in flight to the containers `names` of `service`. Those to other services and other
 * projects, whose live files have other paths, do not count. See
 * https://caddyserver.com/docs/api#get-reverse-proxyupstreams
 *
 * @returns null if Caddy does not answer
 */
export async function requestsInFlight(
  live: LiveDirectory,
  service: string,
  names: readonly string[],
): Promise<InFlight | null> {
  const answer = await get(live, "/reverse_proxy/upstreams");
  if (answer === null) return null;
  const upstreams: readonly Upstream[] = JSON.parse(answer) ?? [];
  const byFile = upstreams.filter(({ address }) =>
    filesIn(live, address).some((file) => isLiveFileOf(service, file)),
  );
  const alias = live.project === null ? null : serviceAlias(service, live.project);
  // Excludes upstreams that the Caddyfile names itself, such as another service: no live file counts their
  // requests.
  const known = new Set([...names, ...(await readLiveFiles(live.path, service))]);
  const to = (isMeant: (host: string) => boolean) =>
    total(upstreams.filter(({ address }) => isMeant(hostOf(address))));
  const named = to((host) => known.has(host) && host !== alias);
  const rescued = to((host) => host === alias);
  return {
    count: to((host) => names.includes(host)),
    unnamed: Math.max(0, total(byFile) - named) + rescued,
  };
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
 * The live files of this project that Caddy's configuration reads (`{file./run/live/app}` → `app`, and on the machine
 * part `{file./run/live/shop/app}` → `app`).
 *
 * @returns null if Caddy does not answer
 */
export async function liveFilesRead(live: LiveDirectory): Promise<ReadonlySet<string> | null> {
  const answer = await get(live, "/config/");
  return answer === null ? null : new Set(filesIn(live, answer));
}

/** Whether Caddy's configuration has the log of the project's requests, under whatever path Caddy sees the live files. */
export async function logsRequests(live: LiveDirectory): Promise<boolean> {
  return (await get(live, "/config/"))?.includes(`${requestsLog("/", live.project)}"`) ?? false;
}

/**
 * The project's live files that `text` names. On the machine part the whole path counts: other projects have files of
 * the same name. A Caddy of the project's own may have them at any place.
 */
function filesIn({ project }: LiveDirectory, text: string): readonly string[] {
  const paths = [...text.matchAll(/\{file\.([^}]*)\}/g)].map(([, path = ""]) => posix.parse(path));
  const mine = project === null ? null : posix.join(liveMount, project);
  return paths.filter(({ dir }) => mine === null || dir === mine).map(({ base }) => base);
}

async function get({ adminSocket }: LiveDirectory, path: string): Promise<string | null> {
  const target = { socketPath: adminSocket, path };
  // Caddy refuses an Origin that it does not know. It accepts this host without an Origin.
  const headers = { host: "localhost" };
  const answer = await sendHttp(target, { headers, timeoutMs: answerTimeoutMs }).catch(() => null);
  return answer?.status === 200 ? answer.body.toString() : null;
}
