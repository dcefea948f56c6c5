/**
 * Which ports of a project Caddy serves, and where. A published TCP port is a web address, unless its number is that of
 * another protocol, or something that is not HTTP answers there right now. A project without one has its one service with
 * `build:`. In doubt a person is asked, with that as the proposal.
 */
import { isIP } from "node:net";
import { join } from "node:path";
import type { ComposeService } from "#platform/compose-model";
import { sendHttp } from "#platform/http";
import { namesRunToTheirEnd, replacementOf } from "#rollout/project";
import { readIfThere, SetupError } from "./planned-file.ts";
import { asName, type SetupServices } from "./project.ts";
import { ownRoot } from "./start.ts";

const tls = "TLS with a certificate of its own";

/** Ports of containers that speak another protocol than HTTP. */
const otherProtocols: readonly (readonly [protocol: string, ...ports: readonly number[]])[] = [
  [tls, 443, 4443, 8443, 8448, 9443],
  ["SSH", 22, 222, 2222],
  ["FTP", 20, 21, 990],
  ["mail", 25, 110, 143, 465, 587, 993, 995, 1025, 2525],
  ["DNS", 53, 853],
  ["LDAP", 389, 636],
  ["files", 139, 445, 2049],
  ["video", 554, 1935],
  ["a VPN", 1194, 51820],
  ["MQTT", 1883, 8883],
  ["SQL Server", 1433],
  ["Oracle", 1521],
  ["MySQL", 3306, 33060],
  ["PostgreSQL", 5432, 5433, 6432],
  ["Redis", 6379, 6380],
  ["MongoDB", 27017],
  ["Cassandra", 9042],
  ["memcached", 11211],
  ["TURN", 3478, 5349],
  ["NATS", 4222, 6222],
  ["gRPC, which the site of Caddy does not pass on", 4317, 50051],
  ["AMQP", 5671, 5672],
  ["Kafka", 9092, 9094, 29092],
  ["ZooKeeper", 2181],
  ["XMPP", 5222, 5269],
  ["a debugger", 9229, 9230],
  ["a game", 25565, 25575, 27015],
  ["a peer-to-peer protocol", 6881, 22000, 51413],
];

/** A port that a person chose a place for, or the only one of the service. */
export interface GivenPlace {
  readonly service: string;
  /** The port in the container; null: the one that is a web address. */
  readonly port: number | null;
  /** `none`: it stays published as it is. */
  readonly place: NamePlace | { readonly kind: "port"; readonly port: number } | { readonly kind: "none" };
}

interface NamePlace {
  readonly kind: "name";
  readonly name: string;
}

/** A host name, or a port of Caddy's own, bound to `address` ("" for all). */
export type SitePlace =
  | NamePlace
  | { readonly kind: "port"; readonly port: number; readonly address: string };

/** What is known and decided before the plan is made. */
export interface ServedOptions {
  /** The project's name on the server. */
  readonly project: string;
  /** The host name at which the project is reached; null: it has none. */
  readonly name: string | null;
  /** Decided on the command line, as an answer, or at an earlier run. The last one for a port counts. */
  readonly places: readonly GivenPlace[];
  /** Whether Caddy has ports 80 and 443 of the server; else another proxy is in front. */
  readonly isCaddyPublic: boolean;
  /** Ports of the server that Caddy has for other projects, or for itself. */
  readonly takenPorts: readonly number[];
  /** By port of the server: whether what answers there now speaks HTTP. Nothing answers at others. */
  readonly answers: ReadonlyMap<string, boolean>;
}

/** A port of a service's containers. */
export interface Endpoint {
  readonly service: string;
  /** The port in the container. */
  readonly port: number;
  readonly protocol: string;
  /**
   * Where it is published; empty for one that is not. `address`: the one that it is bound to, "" for all. `port`: as the compose
   * file has it, a number, a range such as `8000-8010`, or "" if Docker chooses one.
   */
  readonly published: readonly { readonly address: string; readonly port: string }[];
}

/** A port that Caddy passes requests to. */
export interface Upstream {
  readonly endpoint: Endpoint;
  readonly place: SitePlace;
  readonly isMain: boolean;
  /** Whether only the rule says that it is a web address: nobody chose it, it does not answer, and it is not built here. */
  readonly isInDoubt: boolean;
  /** The ports of the server that Caddy takes over, as a person writes them. */
  readonly published: readonly string[];
}

/** A published port, or one that a person chose. */
interface JudgedPort {
  readonly endpoint: Endpoint;
  /** What a person chose. */
  readonly place: GivenPlace["place"] | null;
  /** Why it is no web address, as a phrase ("SSH"), or null. */
  readonly reason: string | null;
}

/** A published port that stays as it is. */
export type LeftPort = JudgedPort & { readonly reason: string };

/** Where each published port of a project ends, and what changes at its services. */
export interface ServedPlan {
  /** The main one first. */
  readonly upstreams: readonly Upstream[];
  readonly left: readonly LeftPort[];
  /** The services that others of the project reach through Caddy, by the label `hotpush.internal`. */
  readonly internal: readonly { readonly service: string; readonly port: number }[];
  readonly changes: Changes;
}

const answerWithinMs = 2_000;

/** Asks the published TCP ports of a project that the table does not know. Nothing is started. */
export async function askPublishedPorts(services: SetupServices): Promise<ServedOptions["answers"]> {
  const asked = endpointsOf(services).filter(
    (one) => one.protocol === "tcp" && protocolOf(one.port) === null,
  );
  const ports = asked.flatMap(({ published }) => published).filter(({ port }) => /^\d+$/.test(port));
  const answers = await Promise.all(
    ports.map(async ({ address, port }) => {
      const host = address.includes(":") ? `[${address}]` : address || "127.0.0.1";
      try {
        await sendHttp(new URL(`http://${host}:${port}/`), { timeoutMs: answerWithinMs }, 1_024);
        return [[port, true] as const];
      } catch (error) {
        // Node's parser: the bytes that came are not HTTP. Whatever else happened says nothing.
        return (error as NodeJS.ErrnoException).code?.startsWith("HPE_") ? [[port, false] as const] : [];
      }
    }),
  );
  return new Map(answers.flat());
}

/**
 * Plans what Caddy serves. Each published port ends in `upstreams` or in `left`.
 *
 * @throws SetupError if a choice names a service or a port that cannot be served, a service has certificates of its own, or a
 * port that stays published is one that Caddy needs
 */
export function planServed(services: SetupServices, options: ServedOptions): ServedPlan {
  const { name, places, isCaddyPublic } = options;
  const unknown = places.find(({ service }) => !Object.hasOwn(services, service))?.service;
  if (unknown !== undefined)
    throw new SetupError(
      `${unknown} is not a service of your compose file. Those are: ${Object.keys(services).join(", ")}.`,
    );
  const published: readonly JudgedPort[] = endpointsOf(services).map((endpoint) => {
    return { endpoint, place: null, reason: reasonToLeave(endpoint, services, options) };
  });
  const judged = places.reduce((before, place) => withChosenPlace(before, place, services), published);
  const web = judged.filter(({ reason }) => reason === null);
  const candidates = web.length > 0 || name === null ? web : builtService(services);
  const [main, ...others] = mainFirst(candidates, services, name);
  // A tool of an administrator, or what another proxy serves, stays private.
  const isKept = ({ endpoint, place }: JudgedPort) => place === null && isCaddyPublic && isPrivate(endpoint);
  const served = main === undefined ? [] : [main, ...others.filter((one) => !isKept(one))];
  const twins = judged.filter((one) => isTlsTwin(one, judged));
  const upstreams: Upstream[] = [];
  for (const { endpoint, place } of served) {
    const { service, published } = endpoint;
    const isBuilt = published.length > 0 && services[service]?.build !== undefined;
    const isSure = place !== null || isBuilt || published.some(({ port }) => options.answers.get(port));
    const taken = [
      endpoint,
      ...twins.flatMap((twin) => (twin.endpoint.service === service ? twin.endpoint : [])),
    ];
    upstreams.push({
      endpoint,
      place: placeOf({ endpoint, place }, upstreams, options),
      isMain: upstreams.length === 0,
      isInDoubt: !isSure,
      published: [...new Set(taken.flatMap(publishedText))],
    });
  }
  const kept = others.filter(isKept).map((one): LeftPort => {
    return { ...one, reason: `it is published to ${one.endpoint.published[0]?.address} only` };
  });
  const isLeft = (one: JudgedPort): one is LeftPort => one.reason !== null && !twins.includes(one);
  const left = [...kept, ...judged.filter(isLeft)];
  refuseCaddysPorts(left, isCaddyPublic);
  const internal = internalServices(services);
  return { upstreams, left, internal, changes: changesOf(services, { upstreams, left, internal }) };
}

/** All published ports of a project. */
export function endpointsOf(services: SetupServices): readonly Endpoint[] {
  const found = new Map<string, Endpoint>();
  for (const [service, { ports = [] }] of Object.entries(services)) {
    for (const { target, published = "", host_ip: ip = "", protocol = "tcp" } of ports) {
      if (target === undefined) continue;
      const key = `${service} ${target}/${protocol}`;
      const before = found.get(key)?.published ?? [];
      // A port may be listed for all IPv4 and for all IPv6 addresses.
      const address = ip === "0.0.0.0" || ip === "::" ? "" : ip;
      const port = published === "0" ? "" : published;
      const isThere = before.some((one) => one.address === address && one.port === port);
      const all = isThere ? before : [...before, { address, port }];
      found.set(key, { service, port: target, protocol, published: all });
    }
  }
  return [...found.values()];
}

function protocolOf(port: number): string | null {
  return otherProtocols.find(([, ...ports]) => ports.includes(port))?.[0] ?? null;
}

/** Why a published port is no web address, as far as it shows; null: it is one. */
function reasonToLeave(
  { service: name, port, protocol, published }: Endpoint,
  services: SetupServices,
  { answers }: ServedOptions,
): string | null {
  const { network_mode: mode } = services[name] ?? {};
  if (protocol !== "tcp") return protocol.toUpperCase();
  if (mode) return `its network_mode is ${mode}, where Caddy cannot reach it`;
  if (Object.values(services).some((one) => one.network_mode === `service:${name}`))
    return "other services use its network, and are replaced with it";
  if (published.some((one) => answers.get(one.port) === false)) return "what answers there is not HTTP";
  if (published.some((one) => one.port === "443")) return tls;
  return protocolOf(port);
}

/** A port with a place is a web address then, and need not be published. */
function withChosenPlace(
  before: readonly JudgedPort[],
  { service, port, place }: GivenPlace,
  services: SetupServices,
): readonly JudgedPort[] {
  const isMeant = ({ endpoint }: JudgedPort) =>
    endpoint.service === service && endpoint.protocol === "tcp" && (port ?? endpoint.port) === endpoint.port;
  if (place.kind === "none")
    return before.map((one) => (isMeant(one) ? { ...one, place, reason: "as you chose" } : one));
  const own = before.filter(isMeant);
  const chosen = port ?? onlyPort(own, service, services[service] ?? {});
  const found = own.find(({ endpoint }) => endpoint.port === chosen)?.endpoint;
  const endpoint = found ?? { service, port: chosen, protocol: "tcp", published: [] };
  return [...before.filter((one) => one.endpoint !== found), { endpoint, place, reason: null }];
}

/** The port that is meant if only the service is named. */
function onlyPort(own: readonly JudgedPort[], name: string, service: ComposeService): number {
  const web = own.filter(({ reason }) => reason === null);
  const ports = [web, own].find((some) => some.length > 0)?.map(({ endpoint }) => endpoint.port);
  const [port, ...more] = ports ?? exposedPorts(service);
  if (port !== undefined && more.length === 0) return port;
  throw new SetupError(
    `Which port of ${name} do you mean? Write the port in its container: hotpush init --at ${name}:<port>=…`,
  );
}

/** The ports that the compose file, or else the Dockerfile of a service that is built, names. */
function exposedPorts({ expose = [], build }: ComposeService): readonly number[] {
  const named = expose.map((port) => Number.parseInt(port, 10));
  if (named.length > 0 || typeof build !== "object" || build === null) return named;
  const { context, dockerfile = "Dockerfile" } = build as { context?: string; dockerfile?: string };
  const text = (context?.startsWith("/") && readIfThere(join(context, dockerfile))) || "";
  // Of several stages, the last one is built.
  const last = text.slice(Math.max(0, ...Array.from(text.matchAll(/^FROM\b/gim), ({ index }) => index)));
  return Array.from(last.matchAll(/^EXPOSE\s+(\d+)(?!\S*\/udp)/gim), ([, port]) => Number(port));
}

/** A service that a person puts at a host name needs no port 443 of its own: Caddy answers there for it, also over HTTP/3. */
function isTlsTwin(
  { endpoint: { service, published }, place }: JudgedPort,
  judged: readonly JudgedPort[],
): boolean {
  const isNamed = judged.some((one) => one.endpoint.service === service && one.place?.kind === "name");
  return place === null && isNamed && published.some(({ port }) => port === "443");
}

/** The services with `build:` that Caddy can reach. */
export function builtServices(services: SetupServices): readonly string[] {
  const isBuilt = ({ build, network_mode: mode }: ComposeService) => build !== undefined && !mode;
  return Object.entries(services).flatMap(([name, service]) => (isBuilt(service) ? [name] : []));
}

/** The only service with `build:`, if it says at which port it listens. */
function builtService(services: SetupServices): readonly JudgedPort[] {
  const [service = "", ...more] = builtServices(services);
  const [port] = more.length > 0 ? [] : exposedPorts(services[service] ?? {});
  if (port === undefined) return [];
  return [{ endpoint: { service, port, protocol: "tcp", published: [] }, place: null, reason: null }];
}

/** The one that gets the project's own name: a person's choice; else one that visitors can reach, that is built here, ... */
function mainFirst(
  candidates: readonly JudgedPort[],
  services: SetupServices,
  name: string | null,
): readonly JudgedPort[] {
  const isNeeded = (service: string) =>
    candidates.some(({ endpoint }) => services[endpoint.service]?.depends_on?.[service] !== undefined);
  const signs: readonly ((one: JudgedPort) => number | boolean)[] = [
    ({ place }) => !(place?.kind === "name" && place.name === name),
    ({ endpoint }) => isPrivate(endpoint),
    ({ endpoint }) => services[endpoint.service]?.build === undefined,
    // A frontend depends on its backend.
    ({ endpoint }) => isNeeded(endpoint.service),
    ({ endpoint }) => Math.min(...endpoint.published.map(({ port }) => Number(port) || 65_536)),
  ];
  return signs.reduceRight(
    (before, sign) => before.toSorted((a, b) => Number(sign(a)) - Number(sign(b)) || 0),
    candidates,
  );
}

/** Whether only programs of this server, or of one network, reach it. */
function isPrivate({ published }: Endpoint): boolean {
  return published.length > 0 && published.every(({ address }) => address !== "");
}

/** As a person writes them: `8080`, `127.0.0.1:8080`. */
export function publishedText({ published }: Endpoint): readonly string[] {
  return published.map(({ address, port }) => {
    const bound = address.includes(":") ? `[${address}]` : address;
    return `${bound === "" ? "" : `${bound}:`}${port === "" ? "a free port" : port}`;
  });
}

/** A host name, or a port of Caddy's own if there is no name, or if another proxy sends requests to that port. */
function placeOf(
  { endpoint, place }: Pick<JudgedPort, "endpoint" | "place">,
  upstreams: readonly Upstream[],
  { name, isCaddyPublic, takenPorts }: ServedOptions,
): SitePlace {
  const { service, port, published } = endpoint;
  const address = isPrivate(endpoint) ? (published[0]?.address ?? "") : "";
  const ownPorts = upstreams.flatMap((one) => (one.place.kind === "port" ? [one.place.port] : []));
  const used = new Set([...takenPorts, ...ownPorts]);
  const holderOf = (host: string) =>
    upstreams.find((one) => one.place.kind === "name" && one.place.name === host)?.endpoint.service;
  if (place?.kind === "name") {
    const holder = holderOf(place.name);
    if (holder === undefined) return place;
    throw new SetupError(
      `${service} and ${holder} cannot both be at ${place.name}. Choose another host name for one of them.`,
    );
  }
  if (place?.kind === "port") {
    if (!used.has(place.port)) return { ...place, address };
    throw new SetupError(`Caddy has port ${place.port} already. Choose another one for ${service}.`);
  }
  if (name !== null && isCaddyPublic) {
    if (upstreams.length === 0) return { kind: "name", name };
    // `<service>.<name>`; for a further port of the same service `<service>-<port>.<name>`.
    const short = `${asName(service, 63) || "app"}.${name}`;
    const isFirst = !upstreams.some((one) => one.endpoint.service === service) && !holderOf(short);
    return { kind: "name", name: isFirst ? short : `${asName(`${service}-${port}`, 63)}.${name}` };
  }
  // The port at which it was published, so that its clients find it; another one if Caddy has that already.
  const before = published.map((one) => Number(one.port)).filter((one) => one > 0);
  const wanted = [...before, ...(port > 1_023 ? [port] : []), 8_080];
  const free = wanted.find((one) => !used.has(one));
  let next = 8_081;
  while (used.has(next)) next += 1;
  return { kind: "port", port: free ?? next, address };
}

/** A service with port 443 has certificates of its own: Traefik, or any web server. Port 80 is Caddy's if it has the usual ones. */
function refuseCaddysPorts(left: readonly LeftPort[], isCaddyPublic: boolean): void {
  for (const { endpoint, reason } of left) {
    const taken = endpoint.published.find(({ port }) => port === "443" || (isCaddyPublic && port === "80"));
    if (taken === undefined) continue;
    const { service } = endpoint;
    throw new SetupError(
      `${service} publishes port ${taken.port}, which Caddy needs for all projects of this server, and Caddy cannot pass it on: ${reason}. If ${service} only passes requests on, remove it from the compose file and run this again; Caddy gets the certificates. If it is the app itself, say which of its ports speaks plain HTTP: hotpush init --at ${service}:80=<host name>. Or keep it, and copy the service hotpush of ${join(ownRoot, "examples/compose/compose.yaml")} into your compose file.`,
    );
  }
}

function internalServices(services: SetupServices): ServedPlan["internal"] {
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

/** Reads `<service>[:port]=<host name | :port | none>`, the value of `--at`. Null: it has another form. */
export function parsePlace(text: string): GivenPlace | null {
  const [, service, port, at = ""] = /^([\w.-]+?)(?::(\d{1,5}))?=(\S+)$/.exec(text.trim()) ?? [];
  const place = readPlace(at);
  if (service === undefined || place === null) return null;
  return { service, port: port === undefined ? null : Number(port), place };
}

/** Reads a host name, `:8081`, or `none`. Null: none of them. */
export function readPlace(text: string): GivenPlace["place"] | null {
  const lower = text
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\/([^/]*)\/?$/, "$1");
  if (lower === "none") return { kind: "none" };
  const port = Number(/^:(\d{1,5})$/.exec(lower)?.[1] ?? 0);
  if (port > 0 && port < 65_536) return { kind: "port", port };
  return isHostName(lower) ? { kind: "name", name: lower } : null;
}

/** Whether `text` is a DNS name in lower case, such as `shop.example.org` or `localhost`; an address is not. */
function isHostName(text: string): boolean {
  if (text.length > 253 || isIP(text) !== 0) return false;
  return text.split(".").every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label));
}

/** What our compose file changes at a service. */
export interface ServiceChange {
  /** Whether Caddy takes the requests to its published ports. */
  readonly isUpstream: boolean;
  /** Whether it is in the default network without an entry of its own, which a list of networks would end. */
  readonly isInDefault: boolean;
  /** Its published ports that stay. */
  readonly kept: readonly LeftPort[];
  /** Two containers cannot share a name. It stays if two could not run for another reason. */
  readonly dropsContainerName: boolean;
}

/** By service. Those in it join the network that the project shares with Caddy; one that stays as it is has none. */
export type Changes = Readonly<Record<string, ServiceChange>>;

function changesOf(services: SetupServices, plan: Omit<ServedPlan, "changes">): Changes {
  const awaited = namesRunToTheirEnd(services);
  const changes = Object.entries(services).flatMap(([name, service]) => {
    const isUpstream = plan.upstreams.some(({ endpoint }) => endpoint.service === name);
    // Any service may be one that calls another.
    if (!isUpstream && (plan.internal.length === 0 || service.network_mode !== undefined)) return [];
    const isCalled = isUpstream || plan.internal.some((one) => one.service === name);
    const change: ServiceChange = {
      isUpstream,
      isInDefault: service.networks?.default === null,
      kept: plan.left.filter(({ endpoint }) => endpoint.service === name),
      dropsContainerName: isCalled && service.container_name !== undefined,
    };
    const isRolled = replacementOf(serviceAfter(service, change), awaited.has(name)).how === "roll";
    return [[name, isRolled ? change : { ...change, dropsContainerName: false }] as const];
  });
  return Object.fromEntries(changes);
}

/** The service as compose reads it with the change. */
export function serviceAfter(service: ComposeService, change: ServiceChange | undefined): ComposeService {
  if (change === undefined) return service;
  const { ports = [], container_name: name, ...rest } = service;
  const isKept = ({ target, protocol = "tcp" }: (typeof ports)[number]) =>
    change.kept.some(({ endpoint }) => endpoint.port === target && endpoint.protocol === protocol);
  return {
    ...rest,
    ports: change.isUpstream ? ports.filter(isKept) : ports,
    ...(change.dropsContainerName || name === undefined ? {} : { container_name: name }),
  };
}
