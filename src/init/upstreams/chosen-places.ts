import type { SetupServices } from "../compose-services.ts";
import { SetupError } from "../setup-error.ts";
import type { Choices, GivenPlace } from "./choices.ts";
import type { Endpoint } from "./endpoints.ts";
import type { Speech } from "./judge-endpoint.ts";
import { knownImage } from "./known-images.ts";
import { portRank } from "./known-ports.ts";

/** A published port, or one that a person named, and what it speaks. */
export interface JudgedEndpoint {
  readonly endpoint: Endpoint;
  readonly speech: Speech;
  /** Null if no person has chosen a place. */
  readonly place: GivenPlace["place"] | null;
}

/**
 * Adds the places that a person chose. A port with a host name, or a port of Caddy's own, speaks HTTP then, and need not be
 * published.
 *
 * @throws SetupError if a choice names no port, and its service has none or several
 */
export function withChosenPlaces(
  judged: readonly Omit<JudgedEndpoint, "place">[],
  services: SetupServices,
  { places }: Choices,
): readonly JudgedEndpoint[] {
  const all: readonly JudgedEndpoint[] = judged.map((one) => ({ ...one, place: null }));
  return places.reduce((before, given) => withPlace(before, services, given), all);
}

function withPlace(
  judged: readonly JudgedEndpoint[],
  services: SetupServices,
  { service, port, place }: GivenPlace,
): readonly JudgedEndpoint[] {
  const isOf = ({ endpoint }: JudgedEndpoint) => endpoint.service === service && endpoint.protocol === "tcp";
  if (place.kind === "none") {
    return judged.map((one) => (isOf(one) && port === (port && one.endpoint.port) ? { ...one, place } : one));
  }
  const chosen = port ?? onlyPort(judged.filter(isOf), services, service);
  const rest = judged.filter((one) => !isOf(one) || one.endpoint.port !== chosen);
  const found = judged.find((one) => isOf(one) && one.endpoint.port === chosen);
  const endpoint = found?.endpoint ?? { service, port: chosen, protocol: "tcp", published: [] };
  const speech = found?.speech.speaks === "http" ? found.speech : ({ speaks: "http", use: "page" } as const);
  return [...rest, { endpoint, speech, place }];
}

/** The port that is meant if only the service is named. */
function onlyPort(own: readonly JudgedEndpoint[], services: SetupServices, service: string): number {
  const { expose = [], image = "" } = services[service] ?? {};
  const byImage = knownImage(image)?.http ?? [];
  const spoken = own.filter(({ speech }) => speech.speaks === "http").map(({ endpoint }) => endpoint.port);
  const [likeliest] = spoken.toSorted(
    (a, b) => placeIn(byImage, a) - placeIn(byImage, b) || portRank(a) - portRank(b),
  );
  const others =
    own.length > 0 ? own.map(({ endpoint }) => endpoint.port) : [...expose.map(Number), ...byImage];
  const [only] = own.length > 1 ? [] : others;
  const port = likeliest ?? only;
  if (port !== undefined && Number.isInteger(port)) return port;
  throw new SetupError(
    `Which port of ${service} do you mean? Write the port in its container: --at ${service}:<port>=…`,
  );
}

function placeIn(ports: readonly number[], port: number): number {
  return ports.includes(port) ? ports.indexOf(port) : ports.length;
}
