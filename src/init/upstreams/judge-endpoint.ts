import type { ComposeService } from "../../platform/compose/model.ts";
import type { SetupService, SetupServices } from "../compose-services.ts";
import type { Endpoint } from "./endpoints.ts";
import { knownImage, protocolByName, type Use } from "./known-images.ts";
import { isHttpPort, isTlsPort, otherProtocol } from "./known-ports.ts";

/** What a port speaks, as far as the compose file shows it. */
export type Speech =
  | { readonly speaks: "http"; readonly use: Use }
  /** `reason` is a short phrase: "SSH", "a database". */
  | { readonly speaks: "other"; readonly reason: string }
  | { readonly speaks: "tls"; readonly reason: string }
  | { readonly speaks: "unknown" };

const other = (reason: string): Speech => ({ speaks: "other", reason });
const http = (use: Use): Speech => ({ speaks: "http", use });
const tls: Speech = { speaks: "tls", reason: "it has a certificate of its own" };

/** Judges a port by its protocol, its image, and other signs, the surest first. */
export function judgeEndpoint(endpoint: Endpoint, services: SetupServices): Speech {
  const { service: name, port, protocol } = endpoint;
  const service = services[name] ?? {};
  if (protocol !== "tcp") return other(protocol.toUpperCase());
  if (hasUdpTwin(endpoint, service)) return other("it is published for UDP too, as for DNS, games and logs");
  if (isShared(name, services)) return other("other services use its network, and are replaced with it");
  const byMode = unreachableMode(service);
  if (byMode !== null) return other(byMode);
  return (
    byImage(name, service, port) ??
    byEvidence(endpoint, services) ??
    byPort(port) ??
    (isWebName(name) || isPortOfApp(service, port) ? http("page") : { speaks: "unknown" })
  );
}

/** HTTP/3 is the only use of UDP beside HTTP. */
function hasUdpTwin({ port }: Endpoint, { ports = [] }: SetupService): boolean {
  return port !== 443 && ports.some(({ target, protocol }) => target === port && protocol === "udp");
}

/** `network_mode: service:vpn` of another service: a new container of this one would leave that without a network. */
function isShared(name: string, services: SetupServices): boolean {
  return Object.values(services).some(({ network_mode: mode }) => mode === `service:${name}`);
}

function unreachableMode({ network_mode: mode }: ComposeService): string | null {
  if (mode === undefined || mode === "") return null;
  return `its network_mode is ${mode}, where Caddy cannot reach it`;
}

function byImage(name: string, service: ComposeService, port: number): Speech | null {
  const { image = "" } = service;
  const known = knownImage(image);
  if (known?.http.includes(port)) return known.use === "machine" ? other(known.reason) : http(known.use);
  const protocol = otherProtocol(port);
  if (known) return isTlsPort(port) ? tls : other(protocol ?? known.reason);
  const named = protocolByName(name, image);
  if (named === null) return null;
  // A game server may have a page, and the page of another one its name.
  return protocol === null && isHttpPort(port) ? { speaks: "unknown" } : other(protocol ?? named);
}

/** Signs for this very port. */
function byEvidence(endpoint: Endpoint, services: SetupServices): Speech | null {
  const { service: name, port, published } = endpoint;
  const service = services[name] ?? {};
  const requested = requestedPorts(name, service);
  if (requested.has(`https:${port}`)) return tls;
  const isHttp =
    requested.has(`http:${port}`) ||
    routedPorts(service).includes(port) ||
    published.some(({ port: number }) => number === "80") ||
    isCalledOverHttp(endpoint, services);
  return isHttp ? http("page") : null;
}

/** The URLs of the health check, by their scheme and port. */
function requestedPorts(name: string, { healthcheck }: ComposeService): ReadonlySet<string> {
  const text = [healthcheck?.test ?? []].flat().join(" ");
  const local = `localhost|127\\.0\\.0\\.1|0\\.0\\.0\\.0|\\[::1\\]|${RegExp.escape(name)}`;
  const urls = text.matchAll(new RegExp(`(https?)://(?:${local})(?::(\\d+))?(?![\\w.-])`, "g"));
  return new Set(
    Array.from(urls, ([, scheme, port]) => `${scheme}:${port ?? (scheme === "https" ? "443" : "80")}`),
  );
}

/** The port that a proxy elsewhere on the machine is pointed at: Traefik, caddy-docker-proxy, nginx-proxy. */
function routedPorts({ labels = {}, environment = {} }: ComposeService): readonly number[] {
  const byLabel = Object.entries(labels).flatMap(([key, value]) => {
    if (/^traefik\.http\.services\..*\.server\.port$/.test(key)) return [Number(value)];
    return /^caddy.*\.reverse_proxy$/.test(key) ? [Number(/(?<!\d)(\d+)\}*$/.exec(value)?.[1])] : [];
  });
  const { VIRTUAL_HOST, VIRTUAL_PORT } = environment;
  return VIRTUAL_HOST ? [...byLabel, Number(VIRTUAL_PORT || "80")] : byLabel;
}

/** Whether a variable of any service has its URL: `http://api:4567`, or as a browser calls it, `http://localhost:8081`. */
function isCalledOverHttp({ service: name, port, published }: Endpoint, services: SetupServices): boolean {
  const own = `${RegExp.escape(name)}:${port}`;
  const outside = published.flatMap(({ port: number }) =>
    number === "" ? [] : [`(?:localhost|127\\.0\\.0\\.1):${number}`],
  );
  const url = new RegExp(`(?:https?|wss?)://(?:${[own, ...outside].join("|")})(?!\\d)`);
  return Object.values(services).some(({ environment = {} }) =>
    Object.values(environment).some((value) => url.test(value ?? "")),
  );
}

function byPort(port: number): Speech | null {
  const protocol = otherProtocol(port);
  if (protocol !== null) return other(protocol);
  if (isTlsPort(port)) return tls;
  return isHttpPort(port) ? http("page") : null;
}

/** Names that only services with pages, or those that pages call, have. */
function isWebName(name: string): boolean {
  return /(?:^|[-_])(?:web|www|website|frontend|ui|webui|webapp|api|graphql|websocket)(?:$|[-_\d])/i.test(
    name,
  );
}

/** Frameworks and platforms for web apps read PORT; a ready-made image may use it for anything. */
function isPortOfApp({ build, environment = {} }: ComposeService, port: number): boolean {
  return build !== undefined && environment.PORT === String(port);
}
