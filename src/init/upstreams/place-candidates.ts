import { isIP } from "node:net";
import { SetupError } from "../setup-error.ts";
import type { Endpoint } from "./endpoints.ts";
import { isPrivate, publishedText } from "./endpoints.ts";
import { labelOf } from "./host-name.ts";
import type { Candidate } from "./rank-candidates.ts";
import type { LeftPort, PlacedPorts, SitePlace, Upstream, UpstreamOptions } from "./upstream.ts";

/**
 * Gives each candidate a place: a host name, or a port of Caddy's own if there is no name, or if another proxy of the
 * machine sends requests to that port. The first one is the main one.
 */
export function placeCandidates(ranked: readonly Candidate[], options: UpstreamOptions): PlacedPorts {
  const upstreams: Upstream[] = [];
  const left: LeftPort[] = [];
  for (const candidate of ranked) {
    const isMain = candidate === ranked[0];
    const reason = reasonToLeave(candidate, isMain, options);
    if (reason === null) upstreams.push(upstreamOf(candidate, isMain, upstreams, options));
    else left.push(leftOf(candidate, reason));
  }
  return { upstreams, left };
}

/** A port that only this machine reaches stays private: a tool of an administrator, or what another proxy serves. */
function reasonToLeave(
  { endpoint, place }: Candidate,
  isMain: boolean,
  { isCaddyPublic }: UpstreamOptions,
): string | null {
  if (place !== null) return place.kind === "none" ? "as you chose" : null;
  if (isMain || !isCaddyPublic || !isPrivate(endpoint)) return null;
  const [{ address } = { address: "" }] = endpoint.published;
  return `it is published to ${address} only`;
}

function leftOf({ endpoint, place }: Candidate, reason: string): LeftPort {
  return { endpoint, reason, isByChoice: place !== null, isInDoubt: false };
}

function upstreamOf(
  candidate: Candidate,
  isMain: boolean,
  upstreams: readonly Upstream[],
  options: UpstreamOptions,
): Upstream {
  const { endpoint } = candidate;
  const place = placeOf(candidate, isMain, upstreams, options);
  const { service, port } = endpoint;
  return { service, port, place, isMain, published: publishedText(endpoint) };
}

function placeOf(
  { endpoint, place }: Candidate,
  isMain: boolean,
  upstreams: readonly Upstream[],
  options: UpstreamOptions,
): SitePlace {
  const { name, isCaddyPublic } = options;
  if (place?.kind === "name") return chosenName(place.name, endpoint, upstreams);
  if (place?.kind === "port") return chosenPort(place.port, endpoint, upstreams, options);
  if (name === null || !isCaddyPublic) return ownPort(endpoint, upstreams, options);
  if (isMain) return { kind: "name", name };
  return isIP(name) === 0 ? ownName(endpoint, name, upstreams) : ownPort(endpoint, upstreams, options);
}

function chosenName(name: string, { service }: Endpoint, upstreams: readonly Upstream[]): SitePlace {
  const other = upstreams.find(({ place }) => place.kind === "name" && place.name === name);
  if (other === undefined) return { kind: "name", name };
  throw new SetupError(
    `${service} and ${other.service} cannot both be at ${name}. Choose another host name for one of them.`,
  );
}

function chosenPort(
  port: number,
  endpoint: Endpoint,
  upstreams: readonly Upstream[],
  { takenPorts }: UpstreamOptions,
): SitePlace {
  if (!usedPorts(upstreams, takenPorts).has(port))
    return { kind: "port", port, address: addressOf(endpoint) };
  throw new SetupError(`Caddy has port ${port} already. Choose another one for ${endpoint.service}.`);
}

/** `<service>.<name>`; for a further port of the same service `<service>-<port>.<name>`. */
function ownName({ service, port }: Endpoint, name: string, upstreams: readonly Upstream[]): SitePlace {
  const isUsed = (one: string) => upstreams.some(({ place }) => place.kind === "name" && place.name === one);
  const short = `${labelOf(service)}.${name}`;
  const isFirst = !upstreams.some((one) => one.service === service) && !isUsed(short);
  return { kind: "name", name: isFirst ? short : `${labelOf(`${service}-${port}`)}.${name}` };
}

/** The port at which it was published, so that its clients find it; another one if Caddy has that already. */
function ownPort(
  endpoint: Endpoint,
  upstreams: readonly Upstream[],
  { takenPorts }: UpstreamOptions,
): SitePlace {
  const used = usedPorts(upstreams, takenPorts);
  const published = endpoint.published.map(({ port }) => Number(port)).filter((port) => port > 0);
  const wanted = [...published, ...(endpoint.port > 1_023 ? [endpoint.port] : []), 8_080];
  const port = wanted.find((one) => !used.has(one)) ?? firstFree(8_081, used);
  return { kind: "port", port, address: addressOf(endpoint) };
}

function usedPorts(upstreams: readonly Upstream[], takenPorts: readonly number[]): ReadonlySet<number> {
  const own = upstreams.flatMap(({ place }) => (place.kind === "port" ? [place.port] : []));
  return new Set([...takenPorts, ...own]);
}

function firstFree(port: number, used: ReadonlySet<number>): number {
  return used.has(port) ? firstFree(port + 1, used) : port;
}

function addressOf(endpoint: Endpoint): string {
  return isPrivate(endpoint) ? (endpoint.published[0]?.address ?? "") : "";
}
