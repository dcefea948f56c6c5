import { parse } from "yaml";
import { projectNetwork, serviceAlias } from "../../config/machine-part.ts";
import type { Choices } from "./choices.ts";
import type { Endpoint, HostPort } from "./endpoints.ts";
import type { UpstreamPlan } from "./plan.ts";
import type { ServiceChange } from "./service-changes.ts";
import type { LeftPort } from "./upstream.ts";

const header = `# Written by \`hotpush init\`; running that again keeps it up to date. Your compose file stays as it is.
# Caddy reaches the services below on a network that only it and they join.`;

/** The text of the compose override: the changes of a plan, and the network that the project shares with Caddy. */
export function overrideText(project: string, { services }: UpstreamPlan): string {
  const changes = Object.entries(services);
  const hasNetwork = changes.some(([, { joins }]) => joins);
  const blocks = changes.flatMap(([name, change]) => ["", ...serviceBlock(project, name, change)]);
  const network = ["", "networks:", `  ${projectNetwork(project)}:`, "    external: true"];
  const lines = [header, changes.length === 0 ? "services: {}" : "services:", ...blocks.slice(1)];
  return `${[...lines, ...(hasNetwork ? network : [])].join("\n")}\n`;
}

function serviceBlock(project: string, name: string, change: ServiceChange): readonly string[] {
  return [
    `  ${key(name)}:`,
    ...(change.isUpstream ? portLines(change.kept) : []),
    ...(change.joins ? networkLines(project, name, change) : []),
    ...(change.dropsContainerName
      ? ["    container_name: !reset null # Two containers cannot share it."]
      : []),
    ...labelLines(change),
  ];
}

function portLines(kept: readonly LeftPort[]): readonly string[] {
  const ports = kept.flatMap(({ endpoint }) => endpoint.published.map((one) => shortForm(endpoint, one)));
  if (ports.length === 0) return ["    ports: !reset [] # Caddy takes the requests."];
  return [
    "    ports: !override # Caddy takes the requests of the others.",
    ...ports.map((port) => `      - "${port}"`),
  ];
}

function shortForm({ port, protocol }: Endpoint, { address, port: published }: HostPort): string {
  const bound = address.includes(":") ? `[${address}]` : address;
  const outside = bound === "" ? [published].filter(Boolean) : [bound, published];
  return `${[...outside, port].join(":")}/${protocol}`;
}

function networkLines(project: string, name: string, { isInDefault }: ServiceChange): readonly string[] {
  return [
    "    networks:",
    ...(isInDefault ? ["      default:"] : []),
    `      ${projectNetwork(project)}:`,
    `        aliases: [${serviceAlias(name, project)}]`,
  ];
}

function labelLines({ label }: ServiceChange): readonly string[] {
  if (label === null) return [];
  const why =
    label === "live"
      ? "Two containers may write to its volumes."
      : "Only one container may write to its volumes.";
  return ["    labels:", `      hotpush.rollout: ${label} # ${why}`];
}

/** Quotes a name that YAML could read as a number or a keyword. */
function key(name: string): string {
  return /^[A-Za-z][\w.-]*$/.test(name) && !/^(?:y|n|yes|no|on|off|true|false|null)$/i.test(name)
    ? name
    : JSON.stringify(name);
}

/** What a person answered about the volumes, from the override of an earlier run or as they have changed it. */
export function writersIn(overrideText: string): Choices["writers"] {
  const withoutTags = overrideText.replaceAll(/!(?:reset|override)\b/g, "");
  const { services = {} } = (parse(withoutTags) ?? {}) as Override;
  const answers = Object.entries(services).flatMap(([name, service]) => {
    const label = service?.labels?.["hotpush.rollout"];
    return label === "live" || label === "recreate" ? [[name, label === "live"] as const] : [];
  });
  return Object.fromEntries(answers);
}

interface Override {
  readonly services?: Readonly<Record<string, { readonly labels?: Readonly<Record<string, string>> } | null>>;
}
