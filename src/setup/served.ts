/**
 * Which ports of a project Caddy serves, and where. A published TCP port is a web address, unless its number is that of
 * another protocol, or something that is not HTTP answers there right now. A project without one has its one service with
 * `build:`. In doubt a person is asked, with that as the proposal.
 */
import { join } from "node:path";
import type { ComposeModel, ComposeService } from "#platform/compose";
import { sendHttp } from "#platform/http";
import { CommandError } from "#problems";
import { modeOf, namesRunToTheirEnd, writableVolume } from "#rollout/project";
import { readIfThere } from "./planned-file.ts";
import { asName } from "./server.ts";
import { ownRoot } from "./start.ts";

/** The services of a compose project, as compose itself reads its files, without those that Hotpush adds. */
export type SetupServices = ComposeModel["services"];

/** Ports of containers that speak another protocol than plain HTTP: databases, mail, TLS, queues, debuggers, games. */
const otherProtocols: readonly number[] = [
  20, 21, 22, 25, 53, 110, 139, 143, 222, 389, 443, 445, 465, 554, 587, 636, 853, 990, 993, 995, 1025, 1194,
  1433, 1521, 1883, 1935, 2049, 2181, 2222, 2525, 3306, 3478, 4222, 4317, 4443, 5222, 5269, 5349, 5432, 5433,
  5671, 5672, 6222, 6379, 6380, 6432, 6881, 8443, 8448, 8883, 9042, 9092, 9094, 9229, 9230, 9443, 11211,
  22000, 25565, 25575, 27015, 27017, 29092, 33060, 50051, 51413, 51820,
];

/** What a person says of a port that Caddy does not serve. */
const none = "none";

/** A port that a person chose a place for, or the only one of the service. */
export interface GivenPlace {
  readonly service: string;
  /** The port in the container; null: the one that is a web address. */
  readonly port: number | null;
  /** The host name at which Caddy serves it; `none`: it stays published as it is. */
  readonly host: string;
}

/** What is known and decided before the plan is made. */
export interface ServedOptions {
  /** The host name at which the project is reached. */
  readonly name: string;
  /** Decided on the command line, as an answer, or at an earlier run. The last one for a port counts. */
  readonly places: readonly GivenPlace[];
  /** The ports of the server that Caddy has. */
  readonly caddyPorts: readonly number[];
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
   * Where it is published; empty for one that is not. `address`: the one that it is bound to, as in a URL, "" for all. `port`: as
   * the compose file has it, a number, a range such as `8000-8010`, or "" if Docker chooses one.
   */
  readonly published: readonly { readonly address: string; readonly port: string }[];
}

/** A port that Caddy passes requests to. */
export interface Upstream {
  readonly endpoint: Endpoint;
  /** The host name at which Caddy serves it. */
  readonly host: string;
  /** Whether a person chose it. */
  readonly isChosen: boolean;
  /** Whether only the rule says that it is a web address: nobody chose it, it does not answer, and it is not built here. */
  readonly isInDoubt: boolean;
}

/** A port, and what a person or the rule says of it. */
interface JudgedPort {
  readonly endpoint: Endpoint;
  /** What a person chose. */
  readonly host: string | null;
  /** Why it is no web address, as a phrase, or null. */
  readonly reason: string | null;
}

/** A published port that stays as it is. */
export type LeftPort = JudgedPort & { readonly reason: string };

/** Where each published port of a project ends, and what changes at its services. */
export interface ServedPlan {
  /** The main one first. */
  readonly upstreams: readonly Upstream[];
  readonly left: readonly LeftPort[];
  readonly changes: Changes;
}

const answerWithinMs = 2_000;

/** Asks the published TCP ports of a project that the table does not know. Nothing is started. */
export async function askPublishedPorts(services: SetupServices): Promise<ServedOptions["answers"]> {
  const asked = endpointsOf(services).filter(
    ({ protocol, port }) => protocol === "tcp" && !otherProtocols.includes(port),
  );
  const ports = asked.flatMap(({ published }) => published).filter(({ port }) => /^\d+$/.test(port));
  const answers = await Promise.all(
    ports.map(async ({ address, port }) => {
      const url = new URL(`http://${address || "127.0.0.1"}:${port}/`);
      try {
        await sendHttp(url, { timeoutMs: answerWithinMs }, 1_024);
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
 * Plans what Caddy serves, with the answers to what is open by what is known.
 *
 * @param ask null: nobody is asked, and the proposals are taken
 * @throws as `planServed`
 */
export async function chooseServed(
  services: SetupServices,
  known: ServedOptions,
  ask: ((question: ServedQuestion) => Promise<GivenPlace>) | null,
): Promise<ServedPlan> {
  const places = [...known.places];
  if (ask !== null)
    for (const question of questionsOf(planServed(services, known))) places.push(await ask(question));
  return planServed(services, { ...known, places });
}

/**
 * Plans what Caddy serves. Each published port ends in `upstreams` or in `left`.
 *
 * @throws CommandError if a choice names a service or a port that cannot be served, a service has certificates of its own, or a
 * port that stays published is one that Caddy needs
 */
export function planServed(services: SetupServices, options: ServedOptions): ServedPlan {
  const { name, places, caddyPorts, answers } = options;
  const unknown = places.find(({ service }) => !Object.hasOwn(services, service))?.service;
  if (unknown !== undefined)
    throw new CommandError(
      `${unknown} is not a service of your compose file. Those are: ${Object.keys(services).join(", ")}.`,
    );
  // A service that a person puts at a host name needs no port 443 of its own: Caddy answers there for it.
  const isCaddys = (one: Endpoint) =>
    isPublishedAt(one, "443") && places.some(({ service, host }) => service === one.service && host !== none);
  const published = endpointsOf(services)
    .filter((one) => !isCaddys(one))
    .map((endpoint): JudgedPort => {
      return { endpoint, host: null, reason: reasonToLeave(endpoint, services, answers) };
    });
  const hasWeb = published.some(({ reason }) => reason === null) || places.some(({ host }) => host !== none);
  const all = places.reduce<readonly JudgedPort[]>(
    (before, place) => withChosenPlace(before, place, services),
    hasWeb ? published : [...published, ...builtService(services)],
  );
  const candidates = all.filter(({ reason }) => reason === null);
  const [main, ...others] = mainFirst(candidates, services, name);
  const judged = others.map((one) => ({ ...one, reason: reasonToKeep(one, name) }));
  const upstreams: Upstream[] = [];
  for (const { endpoint, host } of [main ?? [], judged.filter(({ reason }) => reason === null)].flat()) {
    const isBuilt = endpoint.published.length > 0 && services[endpoint.service]?.build !== undefined;
    const isChosen = host !== null;
    const isSure = isChosen || isBuilt || endpoint.published.some(({ port }) => answers.get(port));
    upstreams.push({ endpoint, host: hostOf(endpoint, host, upstreams, name), isChosen, isInDoubt: !isSure });
  }
  const left = [...judged, ...all].filter((one): one is LeftPort => one.reason !== null);
  refuseCaddysPorts(left, caddyPorts);
  return { upstreams, left, changes: changesOf(services, upstreams, left) };
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
      const address = ip === "0.0.0.0" || ip === "::" ? "" : ip.replace(/.*:.*/, "[$&]");
      const port = published === "0" ? "" : published;
      const isThere = before.some((one) => one.address === address && one.port === port);
      const all = isThere ? before : [...before, { address, port }];
      found.set(key, { service, port: target, protocol, published: all });
    }
  }
  return [...found.values()];
}

function isPublishedAt({ published }: Endpoint, port: string): boolean {
  return published.some((one) => one.port === port);
}

/** Why a published port is no web address, as far as it shows; null: it is one. */
function reasonToLeave(
  { service: name, port, protocol, published }: Endpoint,
  services: SetupServices,
  answers: ServedOptions["answers"],
): string | null {
  const { network_mode: mode } = services[name] ?? {};
  if (protocol !== "tcp") return protocol.toUpperCase();
  if (mode) return `its network_mode is ${mode}, where Caddy cannot reach it`;
  if (Object.values(services).some((one) => one.network_mode === `service:${name}`))
    return "other services use its network, and are replaced with it";
  if (published.some((one) => answers.get(one.port) === false)) return "what answers there is not HTTP";
  if (published.some((one) => one.port === "443")) return "port 443 has a certificate of its own";
  return otherProtocols.includes(port) ? "the number in its container is that of another protocol" : null;
}

/** Why a web address beside the main one stays as it is, or null. */
function reasonToKeep({ endpoint, host }: JudgedPort, name: string): string | null {
  const { service, port, published } = endpoint;
  if (host !== null) return null;
  // A tool of an administrator, or what another proxy serves, stays private.
  if (isPrivate(endpoint)) return `it is published to ${published[0]?.address} only`;
  if (URL.canParse(`http://app.${name}`)) return null;
  return `${name} has no host names below it (hotpush init --at ${service}:${port}=<host name>)`;
}

/** A port with a place is a web address then, and need not be published. */
function withChosenPlace(
  before: readonly JudgedPort[],
  { service, port, host }: GivenPlace,
  services: SetupServices,
): readonly JudgedPort[] {
  const isMeant = ({ endpoint }: JudgedPort) =>
    endpoint.service === service && endpoint.protocol === "tcp" && (port ?? endpoint.port) === endpoint.port;
  if (host === none)
    return before.map((one) => (isMeant(one) ? { ...one, host, reason: "as you chose" } : one));
  const own = before.filter(isMeant);
  const chosen = port ?? onlyPort(own, service, services[service] ?? {});
  const found = own.find(({ endpoint }) => endpoint.port === chosen)?.endpoint;
  const endpoint = found ?? { service, port: chosen, protocol: "tcp", published: [] };
  return [...before.filter((one) => one.endpoint !== found), { endpoint, host, reason: null }];
}

/** The port that is meant if only the service is named. */
function onlyPort(own: readonly JudgedPort[], name: string, service: ComposeService): number {
  const web = own.filter(({ reason }) => reason === null);
  const ports = [web, own].find((some) => some.length > 0)?.map(({ endpoint }) => endpoint.port);
  const [port, ...more] = ports ?? exposedPorts(service);
  if (port !== undefined && more.length === 0) return port;
  throw new CommandError(
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

/** The only service with `build:`, if it says at which port it listens. */
function builtService(services: SetupServices): readonly JudgedPort[] {
  const built = Object.entries(services).filter(([, one]) => one.build !== undefined && !one.network_mode);
  const [[service = "", definition = {}] = []] = built;
  const [port] = built.length > 1 ? [] : exposedPorts(definition);
  if (port === undefined) return [];
  return [{ endpoint: { service, port, protocol: "tcp", published: [] }, host: null, reason: null }];
}

/** The one that gets the project's own name: a person's choice; else one that visitors can reach, that is built here, ... */
function mainFirst(
  candidates: readonly JudgedPort[],
  services: SetupServices,
  name: string,
): readonly JudgedPort[] {
  const isNeeded = (service: string) =>
    candidates.some(({ endpoint }) => services[endpoint.service]?.depends_on?.[service] !== undefined);
  const signs: readonly ((one: JudgedPort) => number | boolean)[] = [
    ({ host }) => host !== name,
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

/** The chosen host name; else the project's own for the main one, and `<service>.<name>` for others. */
function hostOf(
  { service, port }: Endpoint,
  chosen: string | null,
  upstreams: readonly Upstream[],
  name: string,
): string {
  const holderOf = (host: string) => upstreams.find((one) => one.host === host)?.endpoint.service;
  if (chosen === null) {
    if (upstreams.length === 0) return name;
    const short = `${asName(service, 63)}.${name}`;
    return holderOf(short) === undefined ? short : `${asName(`${service}-${port}`, 63)}.${name}`;
  }
  const holder = holderOf(chosen);
  if (holder === undefined) return chosen;
  throw new CommandError(
    `${service} and ${holder} cannot both be at ${chosen}. Choose another host name for one of them.`,
  );
}

/** A service with port 443 has certificates of its own: Traefik, or any web server. */
function refuseCaddysPorts(left: readonly LeftPort[], caddyPorts: readonly number[]): void {
  for (const { endpoint, reason } of left) {
    const taken = caddyPorts.find((port) => isPublishedAt(endpoint, String(port)));
    if (taken === undefined) continue;
    const { service } = endpoint;
    throw new CommandError(
      `${service} publishes port ${taken}, which Caddy needs for all projects of this server, and Caddy cannot pass it on: ${reason}. If ${service} only passes requests on, remove it from the compose file and run this again; Caddy gets the certificates. If it is the app itself, say which of its ports speaks plain HTTP: hotpush init --at ${service}:80=<host name>. Or keep it, and copy the service hotpush of ${join(ownRoot, "examples/compose/compose.yaml")} into your compose file.`,
    );
  }
}

/** Reads `<service>[:port]=<host name | none>`, the value of `--at`. Null: it has another form. */
export function parsePlace(text: string): GivenPlace | null {
  const [, service, port, at = ""] = /^([\w.-]+?)(?::(\d{1,5}))?=(\S+)$/.exec(text.trim()) ?? [];
  const host = readHost(at);
  if (service === undefined || host === null) return null;
  return { service, port: port === undefined ? null : Number(port), host };
}

/** Reads a host name, or `none`. Null: neither of them. */
export function readHost(text: string): string | null {
  const lower = text
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\/([^/]*)\/?$/, "$1");
  const isLabel = (label: string) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label);
  return lower.length <= 253 && lower.split(".").every(isLabel) ? lower : null;
}

/** What our compose file changes at a service that Caddy serves: it also joins the network that the project shares with Caddy. */
export interface ServiceChange {
  /**
   * Its networks that need an entry: the default one, if the compose file has none for it, which a list of networks would end; all of
   * them, if it is found by an alias there.
   */
  readonly networks: readonly string[];
  /** Its published ports that stay. */
  readonly kept: readonly LeftPort[];
  /** Its `container_name`, which two containers cannot share: an alias takes its place. Null: it has none, or two could not run anyway. */
  readonly droppedName: string | null;
}

/** By service. */
export type Changes = Readonly<Record<string, ServiceChange>>;

function changesOf(
  services: SetupServices,
  upstreams: readonly Upstream[],
  left: readonly LeftPort[],
): Changes {
  const awaited = namesRunToTheirEnd(services);
  const served = Object.entries(services).filter(([name]) =>
    upstreams.some(({ endpoint }) => endpoint.service === name),
  );
  const changes = served.map(([name, service]) => {
    const change: ServiceChange = {
      networks: service.networks?.default === null ? ["default"] : [],
      kept: left.filter(({ endpoint }) => endpoint.service === name),
      droppedName: null,
    };
    const droppedName = service.container_name ?? null;
    const isRolled =
      modeOf(serviceAfter(service, { ...change, droppedName }), awaited.has(name)).how === "roll";
    const networks = Object.keys(service.networks ?? {});
    return [name, isRolled && droppedName !== null ? { ...change, networks, droppedName } : change] as const;
  });
  return Object.fromEntries(changes);
}

/** The service as compose reads it with the change. */
export function serviceAfter(service: ComposeService, change: ServiceChange | undefined): ComposeService {
  if (change === undefined) return service;
  const { ports = [], container_name: name, ...rest } = service;
  const isKept = ({ target, protocol = "tcp" }: (typeof ports)[number]) =>
    change.kept.some(({ endpoint }) => endpoint.port === target && endpoint.protocol === protocol);
  const own = change.droppedName !== null || name === undefined ? {} : { container_name: name };
  return { ...rest, ports: ports.filter(isKept), ...own };
}

/** A question that only a person can answer: where Caddy serves what nobody has placed. */
export interface ServedQuestion {
  /** What a person should know before they answer. */
  readonly text: string;
  readonly prompt: string;
  /** What Enter means. */
  readonly proposal: string;
  /** Reads the answer; null: it cannot be used. */
  readonly read: (text: string) => GivenPlace | null;
}

/** The open questions of a plan: the host names that it made up, if that is in doubt or one of several. */
export function questionsOf({ upstreams }: ServedPlan): readonly ServedQuestion[] {
  return upstreams.flatMap(({ endpoint, host: proposal, isChosen, isInDoubt }) => {
    const { service, port, published } = endpoint;
    if (isChosen || (upstreams.length === 1 && !isInDoubt)) return [];
    const at = published.length > 0 ? `, published at ${publishedText(published)}` : "";
    const text = `${service} has a web address (port ${port} in its container${at}). Caddy serves it at a host name; none leaves it as it is.`;
    const read = (answer: string) => {
      const host = readHost(answer);
      return host === null ? null : { service, port, host };
    };
    return [{ text, prompt: `Address of ${service}`, proposal, read }];
  });
}

/** As a person writes them: `8080`, `127.0.0.1:8080`. Many ports in a row are a range. */
function publishedText(published: Endpoint["published"]): string {
  const texts = published.map(({ address, port }) =>
    [address, port || "a free port"].filter(Boolean).join(":"),
  );
  return texts.length > 6 ? `${texts[0]} to ${texts.at(-1)}` : texts.join(", ");
}

/** What a person should know of a plan, a sentence or two each. Every published port is in one of them. */
export function notesOf(
  services: SetupServices,
  name: string,
  { upstreams, left, changes }: ServedPlan,
): readonly string[] {
  const nothing =
    "Caddy serves no service of this project: none publishes a port that is a web address. To serve one: hotpush init --at <service>:<port in its container>=<host name>";
  const kept = Map.groupBy(left, ({ endpoint, reason }) => `${endpoint.service}\n${reason}`);
  const moved = upstreams.length > 0 && !upstreams.some(({ host }) => host === name);
  return [
    ...(upstreams.length > 0 ? [] : [nothing]),
    ...(moved ? [`At ${name} itself there is no page then, only what git hosts send.`] : []),
    ...upstreams.map((one) => upstreamNote(one, services, name)),
    ...Array.from(kept).flatMap(([key, group]) => {
      const [service, reason] = key.split("\n");
      const ports = group.flatMap(({ endpoint }) => endpoint.published);
      if (ports.length === 0) return [];
      const [noun, verb] = ports.length === 1 ? ["Port", "stays"] : ["Ports", "stay"];
      return `${noun} ${publishedText(ports)} of ${service} ${verb} published: ${reason}.`;
    }),
    ...Object.entries(changes).flatMap(([service, change]) =>
      recreatedNote(service, services[service] ?? {}, change),
    ),
  ];
}

function upstreamNote(
  { endpoint, host, isInDoubt }: Upstream,
  services: SetupServices,
  name: string,
): string {
  const { service, port } = endpoint;
  // Its port 443 is Caddy's now, too.
  const own = endpointsOf(services).filter((one) => one.service === service);
  const taken = own.filter((one) => one.port === port || isPublishedAt(one, "443"));
  const before = publishedText(taken.flatMap(({ published }) => published));
  const { deploy, scale } = services[service] ?? {};
  const replicas = Number(deploy?.replicas ?? scale ?? 1);
  return [
    `Caddy serves ${service} (port ${port} in its container) at ${host}.`,
    before !== "" && `Before, it was published at ${before}.`,
    host !== name && `${host} needs a DNS record like that of the project.`,
    isInDoubt && `If it does not speak HTTP: hotpush init --at ${service}:${port}=none`,
    replicas > 1 &&
      `It runs ${replicas} times, and the first container gets all requests, until you write the live files of the others into the site, above its line \`import service\` (docs/rollout.md, Replicas).`,
  ]
    .filter((sentence) => sentence !== false)
    .join(" ");
}

/** A service behind Caddy of which two cannot run, although Caddy could switch between them. */
function recreatedNote(name: string, service: ComposeService, change: ServiceChange): readonly string[] {
  // Its name is in the way of two only as long as it stays.
  const mode = modeOf(
    serviceAfter(service, { ...change, droppedName: service.container_name ?? null }),
    false,
  );
  if (mode.how !== "recreate") return [];
  const isByVolume = writableVolume(service) !== null && service.labels?.["hotpush.rollout"] === undefined;
  const wayOut = ` If two containers may write to it at once, as with uploads, but not with a database file, give ${name} the label hotpush.rollout: live in your compose file.`;
  return [
    `${name} is away for some seconds when a deployment replaces it, because two containers of it cannot run: ${mode.reason}.${isByVolume ? wayOut : ""}`,
  ];
}
