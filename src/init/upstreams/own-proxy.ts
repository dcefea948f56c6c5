import type { SetupServices } from "../compose-services.ts";
import { type Endpoint, endpointsOf } from "./endpoints.ts";
import { judgeEndpoint } from "./judge-endpoint.ts";
import { knownImage } from "./known-images.ts";

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
  return endpoints.find((endpoint) => isOwnProxy(endpoint, endpoints, services))?.service ?? null;
}

function isOwnProxy(endpoint: Endpoint, endpoints: readonly Endpoint[], services: SetupServices): boolean {
  const { image = "" } = services[endpoint.service] ?? {};
  if (edgeImages.test(image)) return endpoint.protocol === "tcp";
  const isPublic = endpoint.published.some(({ address, port }) => address === "" && port === "443");
  if (!isPublic || judgeEndpoint(endpoint, services).speaks !== "tls") return false;
  return !endpoints.some((one) => one.service === endpoint.service && hasKnownPage(one, image));
}

/** An app whose HTTP port is known does not need its port 443: Caddy has a certificate for it. */
function hasKnownPage({ port }: Endpoint, image: string): boolean {
  const known = knownImage(image);
  return known !== null && known.reason !== "a web server" && known.http.includes(port);
}
