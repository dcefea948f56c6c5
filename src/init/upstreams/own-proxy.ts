import type { SetupService, SetupServices } from "../compose-services.ts";
import { type Endpoint, endpointsOf } from "./endpoints.ts";
import { knownImage } from "./known-images.ts";
import { isTlsPort } from "./known-ports.ts";

/** Proxies that find the services by themselves, or get certificates: they need ports 80 and 443 for themselves. */
const edgeImages =
  /(?:^|[/-])(?:traefik|swag|nginx-proxy-manager|nginx-proxy|caddy-docker-proxy|acme-companion)(?:$|[:@])/;

/**
 * The service that brings its own certificates, and so must have port 443: Traefik, or any web server that publishes it.
 * A proxy that publishes plain HTTP only is not one: it can stay, with Caddy in front of it. Null if there is none.
 *
 * @param chosen services that a person has chosen as upstreams
 */
export function findOwnProxy(services: SetupServices, chosen: readonly string[]): string | null {
  const endpoints = endpointsOf(services).filter(({ service }) => !chosen.includes(service));
  const found = endpoints.find((endpoint) => isOwnProxy(endpoint, services[endpoint.service] ?? {}));
  return found?.service ?? null;
}

function isOwnProxy({ port, protocol, published }: Endpoint, { image = "" }: SetupService): boolean {
  if (protocol !== "tcp") return false;
  if (edgeImages.test(image)) return true;
  const isPublic = published.some(({ address, port: number }) => address === "" && number === "443");
  return isPublic && isTlsPort(port) && isUnknownOrWebServer(image);
}

/** An app whose HTTP port is known does not need its port 443: Caddy has a certificate for it. */
function isUnknownOrWebServer(image: string): boolean {
  return knownImage(image)?.reason === "a web server" || knownImage(image) === null;
}
