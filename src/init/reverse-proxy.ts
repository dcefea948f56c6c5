import { keepsData } from "../rollout/compose/keeps-data.ts";
import type { Services, SetupService } from "./compose-services.ts";

/** A port of the host, as the compose file publishes it. */
export interface PublishedPort {
  /** The host's address it is bound to, "" for all of them. */
  readonly address: string;
  readonly port: number;
}

/** Who stands in front of the app, and so who passes `/webhook` on to Hotpush. */
export type Front =
  /** Nobody yet: Caddy takes the place of `service` on the ports that it publishes. */
  | {
      readonly kind: "new-caddy";
      readonly service: string;
      /** The port that the app listens on in its container. */
      readonly target: number;
      readonly published: readonly PublishedPort[];
      /** Ports of the app that will not be published any more, since they are not its web page. */
      readonly dropped: readonly number[];
      readonly hasContainerName: boolean;
      readonly networks: readonly string[];
    }
  /** A proxy of the project's own. `services` are those that may be behind it. */
  | {
      readonly kind: "caddy" | "traefik" | "other-proxy";
      readonly service: string;
      readonly services: readonly string[];
      readonly networks: readonly string[];
    }
  /** No port is published: Hotpush publishes its own. */
  | { readonly kind: "none" };

const proxyImages =
  /(?:^|[/-])(?:caddy|traefik|nginx|openresty|haproxy|envoy|swag|httpd|nginx-proxy-manager)(?:$|[-:@])/;
const proxyNames = /^(?:.*[-_])?(?:proxy|nginx|caddy|traefik|gateway|ingress)(?:[-_].*)?$/;
/** Ports that a web page is usually on, likeliest first. */
const webPorts = [80, 443, 8080, 8000, 3000, 5000, 4000, 8888, 4321, 5173, 9000];

/** The services that publish a port and could be the app, likeliest first. */
export function candidates(services: Services): readonly string[] {
  const found = Object.entries(services).filter(
    ([, service]) => tcpPorts(service).length > 0 && keepsData(service) === null,
  );
  return found.toSorted(([, a], [, b]) => rank(a) - rank(b)).map(([name]) => name);
}

/**
 * Decides it from the project's services.
 *
 * @param wanted the service that is the app, where a person has said so
 */
export function findFront(services: Services, wanted?: string): Front {
  const names = candidates(services);
  const proxy = names.find((name) => name !== wanted && isProxy(name, services));
  if (proxy !== undefined) return behindOwnProxy(proxy, services);
  const name = wanted ?? names[0];
  const service = name === undefined ? undefined : services[name];
  if (name === undefined || service === undefined) return { kind: "none" };
  const ports = tcpPorts(service);
  const [web] = ports.toSorted((a, b) => rankOf(a) - rankOf(b));
  if (web === undefined) return { kind: "none" };
  // An app with certificates of its own cannot be put behind a proxy without being changed.
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

/** A page that is all there is to a project may well be served by an nginx of its own: that is the app. */
function isProxy(name: string, services: Services): boolean {
  const others = Object.entries(services).filter(
    ([other, service]) => other !== name && keepsData(service) === null,
  );
  const service = services[name];
  if (others.length === 0 || service === undefined) return false;
  return proxyImages.test(service.image ?? "") || proxyNames.test(name);
}

function behindOwnProxy(name: string, services: Services): Front {
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

/** None where it is in the default network only, which every other service is in as well. */
function networksOf({ networks = {} }: SetupService): readonly string[] {
  const names = Object.keys(networks);
  return names.length === 0 || names.join() === "default" ? [] : [...new Set(["default", ...names])];
}
