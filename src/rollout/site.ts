import { randomInt } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { liveMount, serverComposeProject } from "#config/server";
import { findOwnContainer, hostOf, listContainers } from "#platform/docker/containers";
import { openHttp } from "#platform/http";
import type { Containers, LiveDirectory, ServiceRollout, Site } from "./context.ts";
import { note } from "./report.ts";
import { askCaddy, filesIn, ownHostOf, replicaOf } from "./switch-traffic.ts";

/**
 * Sends a request to the site of a service while the old version serves. It goes to Caddy's own port, because the public
 * name may lead elsewhere from here. It waits 10 s at most for an answer.
 *
 * @returns null if it gets no answer of the old version, for example because Caddy can't be reached from here
 */
export async function askOldVersion(on: ServiceRollout, old: Containers): Promise<Site | null> {
  const { directedBy, service } = on;
  if (directedBy === null || old.length === 0) return null;
  const config: unknown = JSON.parse((await askCaddy(directedBy, "/config/")) ?? "null");
  const [place] = placesOf(directedBy, service.name, config);
  if (place === undefined) return null;
  const { url, host } = place;
  const found = new AbortController();
  const signal = AbortSignal.any([on.signal, found.signal, AbortSignal.timeout(answerTimeoutMs)]);
  const hosts = [ownHostOf(directedBy, service.name), ...old.map(hostOf)];
  const askAt = async (address: string, index: number) => {
    const target = new URL(url);
    target.hostname = address;
    await sleep(index * nextAddressMs, undefined, { signal });
    const before = await ask({ ...on, signal }, { target, host }, hosts);
    if (before === null || before.rank === 0) throw new Error("no answer of the old version");
    return { target, before };
  };
  try {
    const { target, before } = await Promise.any((await caddyAddresses(on, directedBy)).map(askAt));
    const worseAnswerOf = async (containers: Containers, untilOver: AbortSignal) => {
      const after = await ask({ ...on, signal: untilOver }, { target, host }, containers.map(hostOf));
      if (after !== null && after.rank >= before.rank) return null;
      return `${after?.text ?? "none from a container"}; of the old version: ${before.text}`;
    };
    return { url, worseAnswerOf };
  } catch (error) {
    on.signal.throwIfAborted();
    if (!(error instanceof AggregateError)) throw error;
  } finally {
    found.abort();
  }
  if (service.checkUrl === null)
    note(on, `is not requested at ${url}, where the old version gives no answer (see hotpush.check)`);
  return null;
}

/** Any object in Caddy's configuration. Those that matter nest in many ways. */
interface ConfigNode {
  readonly http_port?: number;
  readonly listen?: readonly string[];
  readonly tls_connection_policies?: readonly unknown[];
  readonly automatic_https?: { readonly skip?: readonly string[] };
  readonly match?: readonly { readonly host?: readonly string[]; readonly path?: readonly string[] }[];
  readonly dial?: string;
  readonly errors?: unknown;
}

type Place = { readonly host: string; readonly url: string };
const anyPlace = { host: "", path: "/", httpPort: 80, server: {} as ConfigNode };

/** Finds the URLs at which Caddy takes requests to `service`, and the hosts that they name, by its configuration. */
export function placesOf(live: LiveDirectory, service: string, config: unknown, around = anyPlace): Place[] {
  if (typeof config !== "object" || config === null) return [];
  const { errors, ...node }: ConfigNode = config;
  const match = Array.isArray(node.match) ? node.match[0] : undefined;
  const here = {
    host: match?.host?.[0]?.replace("*", "www") ?? around.host,
    path: match?.path?.[0]?.replaceAll("*", "") ?? around.path,
    httpPort: node.http_port ?? around.httpPort,
    server: node.listen ? node : around.server,
  };
  const { host, server } = here;
  if (!filesIn(live, node.dial ?? "").some((file) => replicaOf(service, file) > 0))
    return Object.values(node).flatMap((one: unknown) => placesOf(live, service, one, here));
  const port = Number(/:(\d+)/.exec(server.listen?.[0] ?? "")?.[1]);
  const isOpen = port === here.httpPort || host === "" || server.automatic_https?.skip?.includes(host);
  const scheme = isOpen && !server.tls_connection_policies ? "http" : "https";
  const name = host || "localhost";
  return [{ host: name, url: new URL(here.path, `${scheme}://${name}:${port}`).href }];
}

/** The addresses of Caddy on the networks that this process is on, too; on a host, on all. */
async function caddyAddresses({ engine, project }: ServiceRollout, live: LiveDirectory) {
  const all = await listContainers(engine, live.project === null ? project.name : serverComposeProject);
  const own = await findOwnContainer(engine);
  const isShared = (network: string) => own === null || own.addresses.has(network);
  return all
    .filter(({ id, mounts }) => id !== own?.id && mounts.some(({ target }) => target === liveMount))
    .flatMap(({ addresses }) => [...addresses])
    .flatMap(([network, address]) => (isShared(network) && address !== "" ? [address] : []));
}

/** Long enough for the first answer of an app that has just started. */
const answerTimeoutMs = 10_000;
/** Caddy has an address on each of its networks, and not all can be reached from everywhere. The next one doesn't wait longer. */
const nextAddressMs = 200;
/** A stream need not end: its status is enough. */
const bodyTimeoutMs = 1_000;

/**
 * Sends one request that doesn't count as one of a user: a port after the host name marks it in Caddy's log.
 *
 * @param hosts of the containers that should answer
 * @returns a higher rank for a better answer: 0 if the app gave none, 1 for its 5xx, 2 for others. Null if nothing is known,
 * because Caddy wasn't reached, or answered without any container
 */
async function ask(
  { requestCount, signal }: ServiceRollout,
  { target, host }: { readonly target: URL; readonly host: string },
  hosts: readonly string[],
): Promise<{ readonly rank: number; readonly text: string } | null> {
  const marked = `${host}:${randomInt(10_000, 65_000)}`;
  const logged = requestCount?.leaveOut(marked);
  const over = AbortSignal.any([signal, AbortSignal.timeout(answerTimeoutMs)]);
  const headers = { host: marked, "user-agent": "hotpush" };
  const request = { headers, signal: over, acceptsAnyCertificate: true };
  const answer = await openHttp(target, request).catch(() => null);
  signal.throwIfAborted();
  if (answer === null) return over.aborted ? { rank: 0, text: "no answer" } : null;
  await once(answer.resume(), "close", { signal: AbortSignal.timeout(bodyTimeoutMs) }).catch(() => {});
  const line = answer.complete ? await logged?.() : null;
  answer.destroy();
  const { statusCode: status = 0, headers: found } = answer;
  if (line?.container === null && line.outcome === "answered") return null;
  // Caddy names itself in the answers that it passes on.
  const isOfApp = line
    ? hosts.includes(line.container ?? "") && line.outcome !== "failed"
    : status < 500 || found.via?.includes("Caddy");
  const by = isOfApp ? "" : ` from ${line?.outcome === "answered" ? line.container : "Caddy"}`;
  return { rank: isOfApp ? (status < 500 ? 2 : 1) : 0, text: `status ${status}${by}` };
}
