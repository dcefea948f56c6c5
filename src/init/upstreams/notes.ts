import { internalName, internalPort } from "../../config/machine-part.ts";
import { isProxyImage } from "../../platform/compose/model.ts";
import { namesRunToTheirEnd } from "../../rollout/project.ts";
import type { SetupServices } from "../compose-services.ts";
import type { Endpoint } from "./endpoints.ts";
import { publishedText } from "./endpoints.ts";
import type { UpstreamPlan } from "./plan.ts";
import { doubtfulWriters, replacementAfter } from "./service-changes.ts";
import type { LeftPort, Upstream, UpstreamOptions } from "./upstream.ts";

/** What a person should know of a plan, a sentence or two each. Every published port is in one of them. */
export function notesOf(
  services: SetupServices,
  options: UpstreamOptions,
  plan: UpstreamPlan,
): readonly string[] {
  if (plan.ownProxy !== null) return [ownProxyNote(plan.ownProxy)];
  return [
    ...plan.upstreams.map(upstreamNote),
    ...internalNotes(options, plan),
    ...nameNotes(options, plan),
    ...leftNotes(plan.left),
    ...recreatedNotes(services, plan),
    ...writerNotes(services, plan),
    ...proxyNotes(services, plan),
    ...replicaNotes(services, plan),
  ];
}

function ownProxyNote(name: string): string {
  return `${name} is in front of your services with certificates of its own, so it keeps its ports, and Caddy of the machine serves none of them.`;
}

function upstreamNote({ service, port, place, published }: Upstream): string {
  const at = place.kind === "name" ? place.name : `port ${place.port}`;
  const before = published.filter((one) => one !== at.replace("port ", ""));
  const instead = before.length === 0 ? "" : ` Before, it was published at ${before.join(", ")}.`;
  const isOpened =
    place.kind === "name" && published.length > 0 && published.every((one) => one.includes(":"));
  const opened = isOpened
    ? ` Only this machine or its network reached it so far; now all visitors of ${at} do.`
    : "";
  return `Caddy serves ${service} (port ${port} in its container) at ${at}.${instead}${opened}`;
}

function internalNotes({ project }: UpstreamOptions, { internal }: UpstreamPlan): readonly string[] {
  return internal.map(
    ({ service }) =>
      `Other services reach ${service} without a gap at http://${internalName(service, project)}:${internalPort}, and only they do.`,
  );
}

/** A certificate needs a DNS record. */
function nameNotes({ name }: UpstreamOptions, { upstreams }: UpstreamPlan): readonly string[] {
  const others = upstreams.flatMap(({ place }) =>
    place.kind === "name" && place.name !== name ? [place.name] : [],
  );
  if (others.length === 0 || name === null) return [];
  return [
    `${list(others)} ${others.length === 1 ? "needs a DNS record" : "need DNS records"} like that of ${name}.`,
  ];
}

function leftNotes(left: readonly LeftPort[]): readonly string[] {
  const groups = Map.groupBy(left, ({ endpoint, reason }) => `${endpoint.service}\n${reason}`);
  return [...groups.values()].map((group) => {
    const [{ endpoint, reason, isInDoubt }] = group as [LeftPort];
    const ports = portList(group.map((one) => one.endpoint));
    const hint = isInDoubt ? ` If it does: --at ${endpoint.service}:${endpoint.port}=<host name>` : "";
    return `${ports} of ${endpoint.service} ${group.length === 1 ? "stays" : "stay"} published: ${reason}.${hint}`;
  });
}

/** Many ports in a row are a range. */
function portList(endpoints: readonly Endpoint[]): string {
  const ports = endpoints.flatMap(publishedText);
  const shown = ports.length > 6 ? `${ports[0]} to ${ports.at(-1)}` : ports.join(", ");
  return `${ports.length === 1 ? "Port" : "Ports"} ${shown}`;
}

/** Services behind Caddy of which two cannot run, although Caddy could switch between them. */
function recreatedNotes(services: SetupServices, plan: UpstreamPlan): readonly string[] {
  const awaited = namesRunToTheirEnd(services);
  return Object.entries(plan.services).flatMap(([name, change]) => {
    const replacement = replacementAfter(services[name] ?? {}, change, awaited.has(name));
    if (!change.isUpstream || replacement.how !== "recreate") return [];
    const reason = change.label === "recreate" ? "only one may write to its volume" : replacement.reason;
    return [
      `${name} is away for some seconds when a deployment replaces it, because two containers of it cannot run: ${reason}.`,
    ];
  });
}

function writerNotes(services: SetupServices, plan: UpstreamPlan): readonly string[] {
  return doubtfulWriters(services, plan.services).map(
    (name) =>
      `If two containers of ${name} may write to it at once, give it the label hotpush.rollout: live.`,
  );
}

/** Requests from a proxy to the services behind it do not go through Caddy. */
function proxyNotes(services: SetupServices, { upstreams }: UpstreamPlan): readonly string[] {
  const proxies = upstreams.filter(
    ({ service }) => isProxyImage(services[service]?.image) && Object.keys(services).length > 1,
  );
  return [...new Set(proxies.map(({ service }) => service))].map(
    (name) =>
      `If ${name} passes requests on to other services, make it resolve their names again, because each deployment gives them other addresses; for nginx: resolver 127.0.0.11 valid=1s; set $app http://app:8080; proxy_pass $app;`,
  );
}

function replicaNotes(services: SetupServices, { upstreams }: UpstreamPlan): readonly string[] {
  return upstreams.flatMap(({ service, port }) => {
    const { deploy, scale } = services[service] ?? {};
    const replicas = Number(deploy?.replicas ?? scale ?? 1);
    if (replicas < 2) return [];
    return [
      `${service} runs ${replicas} times, and Caddy sends its requests to the first container. For all of them, write their live files into the site (docs/rollout.md, Replicas), with port ${port}.`,
    ];
  });
}

function list(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
