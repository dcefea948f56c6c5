import type { SetupService, SetupServices } from "../compose-services.ts";
import type { Endpoint } from "./endpoints.ts";
import { judgeEndpoint } from "./judge-endpoint.ts";
import { knownImage } from "./known-images.ts";

/**
 * The pages of services that publish no port, by `expose` or their image. A service that another proxy of the machine
 * finds by its labels or its VIRTUAL_HOST is served already.
 */
export function findUnpublished(services: SetupServices): readonly Endpoint[] {
  return Object.entries(services).flatMap(([service, one]) => {
    if ((one.ports ?? []).length > 0 || isServedElsewhere(one)) return [];
    const endpoints = portsOf(one).map((port) => ({ service, port, protocol: "tcp", published: [] }));
    return endpoints.filter((endpoint) => {
      const speech = judgeEndpoint(endpoint, services);
      return speech.speaks === "http" && (speech.use === "page" || speech.use === "dashboard");
    });
  });
}

function isServedElsewhere({ labels = {}, environment = {} }: SetupService): boolean {
  return (
    Boolean(environment.VIRTUAL_HOST) || Object.keys(labels).some((key) => /^(?:traefik\.|caddy)/.test(key))
  );
}

function portsOf({ expose = [], image = "" }: SetupService): readonly number[] {
  const ports = [...expose.map((port) => Number.parseInt(port, 10)), ...(knownImage(image)?.http ?? [])];
  return [...new Set(ports)].filter((port) => port > 0);
}
