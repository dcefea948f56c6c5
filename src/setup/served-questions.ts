import { internalName, internalPort } from "#config/server";
import { replacementOf, writableVolume } from "#rollout/project";
import { SetupError } from "./planned-file.ts";
import type { SetupServices } from "./project.ts";
import {
  builtServices,
  type LeftPort,
  planServed,
  publishedText,
  readPlace,
  type ServedOptions,
  type ServedPlan,
  serviceAfter,
  type Upstream,
} from "./served.ts";

/** A question that only a person can answer. */
export interface ServedQuestion {
  /** Distinct for each thing that is asked. */
  readonly id: string;
  /** What a person should know before they answer. */
  readonly lines: readonly string[];
  readonly prompt: string;
  /** What Enter means. */
  readonly proposal: string;
  /** The options with the answer in them, or a sentence about why it cannot be used. */
  readonly read: (text: string) => ServedOptions | string;
}

/**
 * Plans what Caddy serves, and asks until nothing is open. Each question is asked once.
 *
 * @param ask gives the options with the answer in them; null: nothing is asked, and the proposals are taken
 * @throws SetupError as `planServed`
 */
export async function settleServed(
  services: SetupServices,
  options: ServedOptions,
  ask: ((question: ServedQuestion) => Promise<ServedOptions>) | null,
): Promise<{ readonly plan: ServedPlan; readonly options: ServedOptions }> {
  const asked = new Set<string>();
  for (let now = options; ; ) {
    const plan = planServed(services, now);
    const question = questionsOf(services, now, plan).find(({ id }) => !asked.has(id));
    if (ask === null || question === undefined) return { plan, options: now };
    asked.add(question.id);
    now = await ask(question);
  }
}

/** The open questions of a plan, the most important first. */
export function questionsOf(
  services: SetupServices,
  options: ServedOptions,
  plan: ServedPlan,
): readonly ServedQuestion[] {
  const { name, places } = options;
  const isChosen = ({ endpoint: { service, port } }: Upstream) =>
    places.some((one) => one.service === service && (one.port ?? port) === port);
  const [first, ...others] = plan.upstreams;
  const isFirstOpen = first && !isChosen(first) && (others.length > 0 || first.isInDoubt);
  // A service that is built here may listen at a port that no file names.
  const isNoneOpen = !first && places.length === 0 && builtServices(services).length === 1;
  return [
    ...(name !== null && (isFirstOpen || isNoneOpen) ? [aboutMain(services, options, plan)] : []),
    // A name that the plan made up; the person may have another one, or no DNS record for it.
    ...others
      .filter((one) => one.place.kind === "name" && !isChosen(one))
      .map((one) => aboutName(services, options, one)),
  ];
}

function aboutMain(
  services: SetupServices,
  options: ServedOptions,
  { upstreams }: ServedPlan,
): ServedQuestion {
  const name = options.name ?? "";
  const found = upstreams.map((one) => `${one.endpoint.service}:${one.endpoint.port}`);
  const ports = found.length > 0 ? found : builtServices(services).map((service) => `${service}:<port>`);
  const read = (text: string): ServedOptions | string => {
    const [, service, port] = /^([\w.-]+?)(?::(\d{1,5}))?$/.exec(text) ?? [];
    if (service === undefined) return `Type a service and its port, such as ${ports[0]}, or none.`;
    const none = upstreams.map((one) => ({ ...one.endpoint, place: { kind: "none" } as const }));
    const chosen = { service, port: port ? Number(port) : null, place: { kind: "name", name } as const };
    const given = text === "none" ? none : [chosen];
    return tried(services, { ...options, places: [...options.places, ...given] });
  };
  return {
    id: "main",
    lines: [
      `Which service do visitors reach at ${name}, and at which port in its container? none, if there is none.`,
      `  ${ports.join(" ")}`,
    ],
    prompt: "Service",
    proposal: found[0] ?? "none",
    read,
  };
}

function aboutName(
  services: SetupServices,
  options: ServedOptions,
  { endpoint: { service, port }, place, published }: Upstream,
): ServedQuestion {
  return {
    id: `${service}:${port}`,
    lines: [
      `${service} has a web address too, port ${published.join(", ")}. Caddy serves it at a host name.`,
      // A new port recreates Caddy.
      "(none leaves it as it is; :port gives it a port of Caddy's, and no project of this server answers for about a second.)",
    ],
    prompt: `Address of ${service}`,
    proposal: place.kind === "name" ? place.name : `:${place.port}`,
    read: (text) => {
      const given = readPlace(text);
      if (given === null) return "That is not a host name, :port or none.";
      return tried(services, { ...options, places: [...options.places, { service, port, place: given }] });
    },
  };
}

/** The options, if a plan can be made with them. */
function tried(services: SetupServices, options: ServedOptions): ServedOptions | string {
  try {
    planServed(services, options);
    return options;
  } catch (error) {
    if (error instanceof SetupError) return error.message;
    throw error;
  }
}

/** What a person should know of a plan, a sentence or two each. Every published port is in one of them. */
export function notesOf(
  services: SetupServices,
  options: ServedOptions,
  plan: ServedPlan,
): readonly string[] {
  return [
    ...(plan.upstreams.length > 0 ? [] : [nothingServed]),
    ...plan.upstreams.map(upstreamNote),
    ...plan.internal.map(
      ({ service }) =>
        `Other services reach ${service} without a gap at http://${internalName(service, options.project)}:${internalPort}, and only they do.`,
    ),
    ...nameNotes(options, plan),
    ...leftNotes(plan.left),
    ...recreatedNotes(services, plan),
    ...replicaNotes(services, plan),
  ];
}

const nothingServed =
  "Caddy serves no service of this project: none publishes a port that is a web address. To serve one: hotpush init --at <service>:<port in its container>=<host name>";

function upstreamNote({ endpoint: { service, port }, place, published, isInDoubt }: Upstream): string {
  const at = place.kind === "name" ? place.name : `port ${place.port}`;
  const before = published.filter((one) => one !== at.replace("port ", ""));
  const isOpened =
    place.kind === "name" && published.length > 0 && published.every((one) => one.includes(":"));
  return [
    `Caddy serves ${service} (port ${port} in its container) at ${at}.`,
    ...(before.length === 0 ? [] : [`Before, it was published at ${before.join(", ")}.`]),
    ...(isOpened
      ? [`Only this machine or its network reached it so far; now all visitors of ${at} do.`]
      : []),
    ...(isInDoubt ? [`If it does not speak HTTP: hotpush init --at ${service}:${port}=none`] : []),
  ].join(" ");
}

/** A certificate needs a DNS record. */
function nameNotes({ name }: ServedOptions, { upstreams }: ServedPlan): readonly string[] {
  const others = upstreams.flatMap(({ place }) =>
    place.kind === "name" && place.name !== name ? [place.name] : [],
  );
  if (others.length === 0 || name === null) return [];
  const list = new Intl.ListFormat("en-GB").format(others);
  return [`${list} ${others.length === 1 ? "needs a DNS record" : "need DNS records"} like that of ${name}.`];
}

function leftNotes(left: readonly LeftPort[]): readonly string[] {
  const groups = Map.groupBy(left, ({ endpoint, reason }) => `${endpoint.service}\n${reason}`);
  return [...groups.values()].map((group) => {
    const [{ endpoint, reason }] = group as [LeftPort];
    const ports = group.flatMap((one) => publishedText(one.endpoint));
    // Many ports in a row are a range.
    const shown = ports.length > 6 ? `${ports[0]} to ${ports.at(-1)}` : ports.join(", ");
    const [noun, verb] = ports.length === 1 ? ["Port", "stays"] : ["Ports", "stay"];
    return `${noun} ${shown} of ${endpoint.service} ${verb} published: ${reason}.`;
  });
}

/** Services behind Caddy of which two cannot run, although Caddy could switch between them. */
function recreatedNotes(services: SetupServices, plan: ServedPlan): readonly string[] {
  return Object.entries(plan.changes).flatMap(([name, change]) => {
    const service = services[name] ?? {};
    // Its name is in the way of two only as long as it stays.
    const replacement = replacementOf(serviceAfter(service, { ...change, dropsContainerName: true }), false);
    if (!change.isUpstream || replacement.how !== "recreate") return [];
    const label = "hotpush.rollout: live";
    const wayOut =
      writableVolume(service) === null || service.labels?.["hotpush.rollout"] !== undefined
        ? ""
        : ` If two containers may write to it at once, as with uploads, but not with a database file, give ${name} the label ${label} in your compose file.`;
    return [
      `${name} is away for some seconds when a deployment replaces it, because two containers of it cannot run: ${replacement.reason}.${wayOut}`,
    ];
  });
}

function replicaNotes(services: SetupServices, { upstreams }: ServedPlan): readonly string[] {
  return upstreams.flatMap(({ endpoint: { service, port } }) => {
    const { deploy, scale } = services[service] ?? {};
    const replicas = Number(deploy?.replicas ?? scale ?? 1);
    if (replicas < 2) return [];
    return [
      `${service} runs ${replicas} times, and Caddy sends its requests to the first container. For all of them, write their live files into the site (docs/rollout.md, Replicas), with port ${port}.`,
    ];
  });
}
