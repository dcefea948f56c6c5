import { isProxyImage } from "../platform/compose/model.ts";
import { keepsData } from "../rollout/compose/keeps-data.ts";
import type { SetupService, SetupServices } from "./compose-services.ts";

/** A port of the host that the compose file publishes. */
export interface PublishedPort {
  /** The host's address that it is bound to, "" for all. */
  readonly address: string;
  readonly port: number;
}

/** The reverse proxy in front of the app, which passes `/webhook` on to Hotpush. */
export type ReverseProxy =
  /** None yet: Caddy takes over the ports that `service` publishes. */
  | {
      readonly kind: "new-caddy";
      readonly service: string;
      /** The port that the app listens on in its container. */
      readonly target: number;
      readonly published: readonly PublishedPort[];
      /** Ports of the app that are no longer published, since they are not its web page. */
      readonly dropped: readonly number[];
      readonly hasContainerName: boolean;
      readonly networks: readonly string[];
    }
  /** The project's own. `services` are those that may be behind it. */
  | {
      readonly kind: "caddy" | "traefik" | "other-proxy";
      readonly service: string;
      readonly services: readonly string[];
      readonly networks: readonly string[];
    }
  /** No port is published: Hotpush publishes its own. */
  | { readonly kind: "none" };

const proxyNames = /^(?:.*[-_])?(?:proxy|nginx|caddy|traefik|gateway|ingress)(?:[-_].*)?$/;
/** Usual ports of a web page, most likely first. */
const webPorts = [80, 443, 8080, 8000, 3000, 5000, 4000, 8888, 4321, 5173, 9000];

/** The services that publish a port and could be the app, most likely first. */
export function candidates(services: SetupServices): readonly string[] {
  const found = Object.entries(services).filter(
    ([, service]) => tcpPorts(service).length > 0 && keepsData(service) === null,
  );
  return found.toSorted(([, a], [, b]) => rank(a) - rank(b)).map(([name]) => name);
}

/**
 * Finds it among the project's services.
 *
 * @param wanted the service that is the app, if a person has named it
 */
export function findReverseProxy(services: SetupServices, wanted?: string): ReverseProxy {
  const names = candidates(services);
  const own = names.find((name) => name !== wanted && isProxy(name, services));
  if (own !== undefined) return behindOwnProxy(own, services);
  const name = wanted ?? names[0];
  const service = name === undefined ? undefined : services[name];
  if (name === undefined || service === undefined) return { kind: "none" };
  const ports = tcpPorts(service);
  const [web] = ports.toSorted((a, b) => rankOf(a) - rankOf(b));
  if (web === undefined) return { kind: "none" };
  // An app with its own certificates would need a change to run behind a proxy.
  if (web.target === 443 || web.target === 8443) return behindOwnProxy(name, services);
  const isWeb = ({ target }: { readonly target: number }) => target === web.target;
  return {
    kind: "new-caddy",
    service: name,
    target: web.target,
    published: ports.filter(isWeb).map(({ address, port }) => ({ address, port })),
    dropped: ports.filter((port) => !isWeb(port)).map(({ port }) => port),
    hasContainerName: service.container_name !== undefined,
    networks: networksOf(service),
  };
}

/** If an nginx is the only service beside databases, it serves the page itself: it is the app. */
function isProxy(name: string, services: SetupServices): boolean {
  const others = Object.entries(services).filter(
    ([other, service]) => other !== name && keepsData(service) === null,
  );
  const service = services[name];
  if (others.length === 0 || service === undefined) return false;
  return isProxyImage(service.image) || proxyNames.test(name);
}

function behindOwnProxy(name: string, services: SetupServices): ReverseProxy {
  const service = services[name] ?? {};
  const others = Object.entries(services).filter(([other, one]) => other !== name && keepsData(one) === null);
  const text = `${name} ${service.image ?? ""}`;
  const kind = /traefik/.test(text)
    ? "traefik"
    : /caddy(?!-docker-proxy)/.test(text)
      ? "caddy"
      : "other-proxy";
  return { kind, service: name, services: others.map(([other]) => other), networks: networksOf(service) };
}

function tcpPorts({ ports = [] }: SetupService) {
  return ports.flatMap(({ published, target, host_ip: address = "", protocol = "tcp" }) => {
    const port = Number(published);
    if (protocol !== "tcp" || !Number.isInteger(port) || port === 0 || target === undefined) return [];
    return [{ address: address === "0.0.0.0" ? "" : address, port, target }];
  });
}

function rank(service: SetupService): number {
  return Math.min(...tcpPorts(service).map(rankOf));
}

function rankOf({ port, target }: { readonly port: number; readonly target: number }): number {
  const places = [port, target].map((one) => webPorts.indexOf(one)).filter((place) => place >= 0);
  return places.length === 0 ? webPorts.length : Math.min(...places);
}

/** None if it is only in the default network, as every other service is. */
function networksOf({ networks = {} }: SetupService): readonly string[] {
  const names = Object.keys(networks);
  return names.length === 0 || names.join() === "default" ? [] : [...new Set(["default", ...names])];
}
