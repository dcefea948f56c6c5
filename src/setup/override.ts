import { projectNetwork, serviceAlias } from "#config/server";
import type { Changes, Endpoint, LeftPort, ServiceChange } from "./served.ts";

const header = `# Written by \`hotpush init\`; running that again keeps it up to date. Your compose file stays as it is.
# Caddy reaches the services below on a network that only it and they join.`;

/** The text of our compose file in a checkout: the changes, and the network that the project shares with Caddy. */
export function overrideText(project: string, all: Changes): string {
  const changes = Object.entries(all);
  const blocks = changes.flatMap(([name, change]) => ["", ...serviceBlock(project, name, change)]);
  const network = ["", "networks:", `  ${projectNetwork(project)}:`, "    external: true"];
  const lines = [header, changes.length === 0 ? "services: {}" : "services:", ...blocks.slice(1)];
  return `${[...lines, ...(changes.length === 0 ? [] : network)].join("\n")}\n`;
}

function serviceBlock(project: string, name: string, change: ServiceChange): readonly string[] {
  const { isUpstream, isInDefault, kept, dropsContainerName } = change;
  // YAML could read it as a number or a keyword.
  const isPlain = /^[A-Za-z][\w.-]*$/.test(name) && !/^(?:y|n|yes|no|on|off|true|false|null)$/i.test(name);
  const alias = `        aliases: [${serviceAlias(name, project)}]`;
  return [
    `  ${isPlain ? name : JSON.stringify(name)}:`,
    ...(isUpstream ? portLines(kept) : []),
    "    networks:",
    ...(isInDefault ? ["      default:"] : []),
    `      ${projectNetwork(project)}:`,
    alias,
    ...(dropsContainerName ? ["    container_name: !reset null # Two containers cannot share it."] : []),
  ];
}

function portLines(kept: readonly LeftPort[]): readonly string[] {
  const ports = kept.flatMap(({ endpoint }) => shortForms(endpoint));
  if (ports.length === 0) return ["    ports: !reset [] # Caddy takes the requests."];
  return [
    "    ports: !override # Caddy takes the requests of the others.",
    ...ports.map((port) => `      - "${port}"`),
  ];
}

function shortForms({ port, protocol, published }: Endpoint): readonly string[] {
  return published.map(({ address, port: outside }) => {
    const bound = address.includes(":") ? `[${address}]` : address;
    const parts = bound === "" ? [outside].filter(Boolean) : [bound, outside];
    return `${[...parts, port].join(":")}/${protocol}`;
  });
}
