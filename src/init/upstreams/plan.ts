import type { SetupServices } from "../compose-services.ts";
import { SetupError } from "../setup-error.ts";
import type { Choices } from "./choices.ts";
import { type JudgedEndpoint, withChosenPlaces } from "./chosen-places.ts";
import { type Endpoint, endpointsOf, isPrivate, publishedText } from "./endpoints.ts";
import { judgeEndpoint } from "./judge-endpoint.ts";
import { isTlsPort } from "./known-ports.ts";
import { findOwnProxy } from "./own-proxy.ts";
import { placeCandidates } from "./place-candidates.ts";
import { type Candidate, equalServices, rankCandidates } from "./rank-candidates.ts";
import { changesOf, type ServiceChange } from "./service-changes.ts";
import type { InternalService, LeftPort, PlacedPorts, Upstream, UpstreamOptions } from "./upstream.ts";

/** Where each published port of a project ends, and what changes at its services. */
export interface UpstreamPlan extends PlacedPorts {
  readonly internal: readonly InternalService[];
  /** A service that is in front of the others with its own certificates: then nothing else is planned. */
  readonly ownProxy: string | null;
  /** The changes of the override; other services are not in it. */
  readonly services: Readonly<Record<string, ServiceChange>>;
  /** The services among which a person should choose the main one; empty if it is clear. */
  readonly equals: readonly string[];
}

/**
 * Plans the upstreams of a project. Each published port ends in `upstreams` or in `left`.
 *
 * @throws SetupError if a choice names a service or a port that cannot be served, or a port that stays published is one
 * that Caddy needs
 */
export function planUpstreams(services: SetupServices, options: UpstreamOptions): UpstreamPlan {
  refuseUnknownServices(services, options);
  const ownProxy = findOwnProxy(services, servedByChoice(options.choices));
  if (ownProxy !== null) return { ownProxy, upstreams: [], left: [], internal: [], services: {}, equals: [] };
  const judged = judgeAll(services, options.choices);
  const candidates = judged.flatMap(toCandidate);
  const ranked = mainFirst(rankCandidates(candidates, services), options);
  const placed = placeCandidates(ranked, options);
  const others = judged.filter(({ speech }) => speech.speaks !== "http").map(leftAsItIs);
  const ports = withTlsTwins({ upstreams: placed.upstreams, left: [...placed.left, ...others] });
  if (options.isCaddyPublic) refuseCaddysPorts(ports.left);
  const internal = internalServices(services);
  const equals = isMainChosen(candidates, options) ? [] : equalServices(ranked, services);
  return {
    ownProxy,
    ...ports,
    equals,
    internal,
    services: changesOf(services, { ...ports, internal, choices: options.choices }),
  };
}

function internalServices(services: SetupServices): readonly InternalService[] {
  return Object.entries(services).flatMap(([service, { labels }]) => {
    const text = labels?.["hotpush.internal"];
    if (text === undefined) return [];
    const port = Number(text);
    if (Number.isInteger(port) && port > 0 && port < 65_536) return [{ service, port }];
    throw new SetupError(
      `The label hotpush.internal of ${service} is "${text}". Write the port at which ${service} listens in its container: hotpush.internal: "8080"`,
    );
  });
}

function refuseUnknownServices(services: SetupServices, { choices, main }: UpstreamOptions): void {
  const names = [...choices.places.map(({ service }) => service), ...(main === null ? [] : [main])];
  const unknown = names.find((name) => !Object.hasOwn(services, name));
  if (unknown === undefined) return;
  const known = Object.keys(services).join(", ");
  throw new SetupError(`${unknown} is not a service of your compose file. Those are: ${known}.`);
}

function servedByChoice({ places }: Choices): readonly string[] {
  return places.flatMap(({ service, place }) => (place.kind === "none" ? [] : [service]));
}

function judgeAll(services: SetupServices, choices: Choices): readonly JudgedEndpoint[] {
  const judged = endpointsOf(services).map((endpoint) => ({
    endpoint,
    speech: judgeEndpoint(endpoint, services),
  }));
  return withChosenPlaces(judged, services, choices);
}

function toCandidate({ endpoint, speech, place }: JudgedEndpoint): readonly Candidate[] {
  return speech.speaks === "http" ? [{ endpoint, use: speech.use, place }] : [];
}

function isMainChosen(candidates: readonly Candidate[], { main, name }: UpstreamOptions): boolean {
  return main !== null || candidates.some((one) => hasName(one, name));
}

function hasName({ place }: Candidate, name: string | null): boolean {
  return place?.kind === "name" && place.name === name;
}

/** A person's choice of the main service counts more than the signs. */
function mainFirst(ranked: readonly Candidate[], { main, name }: UpstreamOptions): readonly Candidate[] {
  const chosen =
    ranked.find((one) => hasName(one, name)) ?? ranked.find(({ endpoint }) => endpoint.service === main);
  if (chosen !== undefined) return [chosen, ...ranked.filter((one) => one !== chosen)];
  if (main === null) return ranked;
  throw new SetupError(
    `${main} publishes no port that speaks HTTP, as far as its compose file shows. If one does, name the port in its container: --at ${main}:<port>=<host name>`,
  );
}

function leftAsItIs({ endpoint, speech, place }: JudgedEndpoint): LeftPort {
  const isUnknown = speech.speaks === "unknown";
  const isByChoice = place?.kind === "none";
  const reason = "reason" in speech ? speech.reason : "nothing shows whether it speaks HTTP";
  return { endpoint, reason, isByChoice, isInDoubt: isUnknown && !isByChoice && !isPrivate(endpoint) };
}

/** A service that Caddy serves by name needs no port 443 of its own: Caddy answers there for it, also over HTTP/3. */
function withTlsTwins({ upstreams, left }: PlacedPorts) {
  const twinsOf = ({ service, place }: Upstream) =>
    left.filter(({ endpoint }) => place.kind === "name" && endpoint.service === service && isOn443(endpoint));
  const twins = new Set(upstreams.flatMap(twinsOf));
  return {
    upstreams: upstreams.map((one) => ({
      ...one,
      published: [...one.published, ...twinsOf(one).flatMap(({ endpoint }) => publishedText(endpoint))],
    })),
    left: left.filter((one) => !twins.has(one)),
  };
}

function isOn443({ port, published }: Endpoint): boolean {
  return isTlsPort(port) && published.some((one) => one.port === "443");
}

/** Ports 80 and 443 are Caddy's: whatever else has them could not start. */
function refuseCaddysPorts(left: readonly LeftPort[]): void {
  for (const { endpoint, reason } of left) {
    const taken = endpoint.published.find(({ port }) => port === "80" || port === "443");
    if (taken === undefined) continue;
    throw new SetupError(
      `${endpoint.service} publishes port ${taken.port}, which Caddy needs for all projects of this machine, and Caddy cannot pass it on (${reason}). Publish another port there; or, if it does speak HTTP: --at ${endpoint.service}:${endpoint.port}=<host name>`,
    );
  }
}
