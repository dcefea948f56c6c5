import { variables } from "../config/settings.ts";
import { caddyfileName, seededServices, traefikLabels } from "./proxy-config.ts";
import type { PublishedPort, ReverseProxy } from "./reverse-proxy.ts";

/** The file with Hotpush's own part of a compose project. */
export const ownComposeFile = "compose.hotpush.yaml";
/** Further variables for Hotpush's container; a person writes it, `init` does not. */
export const ownEnvFile = "hotpush.env";

/** Settings that the container fixes. */
export const notPassedOn: readonly string[] = ["WEBHOOK_PORT", "WEBHOOK_HOST", "REPO_PATH", "STATE_PATH"];
/** Settings that a person may write into .env. */
const passedOn = Object.keys(variables).filter((name) => !notPassedOn.includes(name));

export interface ComposeFileOptions {
  readonly proxy: ReverseProxy;
  /** The URL that the git host sends to. */
  readonly payloadUrl: URL;
  /** The name of Hotpush's image. */
  readonly image: string;
  /** Caddy gets a certificate for a public name. */
  readonly hasCertificate: boolean;
  /** The remote is reached by ssh, so keys are needed. */
  readonly isSsh: boolean;
  /** The home directory of the container's user. */
  readonly home: "/root" | "/home/node";
  /** A remote that is a directory of this machine, else null. */
  readonly localRemote: string | null;
  /** Whether ALLOWED_SIGNERS names a file of this machine. */
  readonly hasSigners: boolean;
  /** The service name of the added proxy; not `caddy` if the project has one. */
  readonly proxyName: string;
}

/** The text of compose.hotpush.yaml: Hotpush, and the proxy in front of it. The values of this machine are in .env. */
export function composeFile(options: ComposeFileOptions): string {
  const { proxy } = options;
  const blocks = [
    header,
    "services:",
    ...appBlock(proxy),
    ...proxyBlock(options),
    ...hotpushBlock(options),
    "volumes:",
    ...(proxy.kind === "none" ? [] : ["  hotpush-live:"]),
    ...(proxy.kind === "new-caddy" ? ["  hotpush-caddy:"] : []),
    "  hotpush-state:",
  ];
  return `${blocks.join("\n")}\n`;
}

const header = `# Hotpush's part of this project, written by \`hotpush init\`; running that again keeps it up to date.
# COMPOSE_FILE in .env joins it to your compose file, which stays as it is. Values of this machine are in .env.`;

function appBlock(proxy: ReverseProxy): readonly string[] {
  if (proxy.kind === "caddy") {
    return [`  ${key(proxy.service)}:`, "    volumes:", "      - hotpush-live:/run/live", ""];
  }
  if (proxy.kind !== "new-caddy") return [];
  return [
    `  ${key(proxy.service)}:`,
    "    # Caddy has them now. Without them the old and the new container can run side by side.",
    "    ports: !reset []",
    ...(proxy.hasContainerName ? ["    container_name: !reset null"] : []),
    "",
  ];
}

function proxyBlock({ proxy, hasCertificate, proxyName }: ComposeFileOptions): readonly string[] {
  if (proxy.kind !== "new-caddy") return [];
  return [
    `  ${proxyName}:`,
    "    image: caddy:2",
    "    restart: unless-stopped",
    `    depends_on: [${key(proxy.service)}]`,
    "    ports:",
    ...portsOf(proxy.published, hasCertificate).map((port) => `      - "${port}"`),
    "    environment:",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: compose replaces it
    "      SITE: ${SITE:?run hotpush init}",
    "    volumes:",
    `      - \${REPO_PATH}/${caddyfileName}:/etc/caddy/Caddyfile:ro`,
    "      - hotpush-live:/run/live",
    "      - hotpush-caddy:/data",
    ...networks(proxy.networks),
    "",
  ];
}

function portsOf(published: readonly PublishedPort[], hasCertificate: boolean): readonly string[] {
  const kept = published.map(({ address, port }) => {
    const bound = address.includes(":") ? `[${address}]` : address;
    return `${bound === "" ? "" : `${bound}:`}${port}:${port}`;
  });
  return [...new Set([...kept, ...(hasCertificate ? ["80:80", "443:443", "443:443/udp"] : [])])];
}

/* biome-ignore-start lint/suspicious/noTemplateCurlyInString: compose replaces what is in ${…} */
function hotpushBlock(options: ComposeFileOptions): readonly string[] {
  const { proxy, image, isSsh, home, localRemote, hasSigners, payloadUrl } = options;
  return [
    "  hotpush:",
    `    image: \${HOTPUSH_IMAGE:-${image}}`,
    "    pull_policy: never # `hotpush init` has built it on this machine.",
    "    restart: unless-stopped",
    '    user: "${HOTPUSH_USER:-0:0}"',
    '    group_add: ["${DOCKER_GID:-0}"]',
    "    read_only: true",
    "    tmpfs: [/tmp]",
    ...(proxy.kind === "none" ? ['    ports: ["${WEBHOOK_PORT:-9000}:9000"]'] : seeding(proxy)),
    "    env_file:",
    "      # What DEPLOY_ENV names, HOTPUSH_MIN_FREE, GIT_SSH_COMMAND and the like: values for git, docker and deploy.sh.",
    `      - path: \${REPO_PATH}/${ownEnvFile}`,
    "        required: false",
    "    environment:",
    "      REPO_PATH: ${REPO_PATH:?run hotpush init}",
    ...passedOn.map((name) => `      ${name}: \${${name}:-${defaultOf(name, proxy)}}`),
    "      WEBHOOK_SECRET: ${WEBHOOK_SECRET:?run hotpush init}",
    "      WEBHOOK_SECRET_PREVIOUS: ${WEBHOOK_SECRET_PREVIOUS:-}",
    "    volumes:",
    "      # At the path that it has on the machine, so that the paths in compose files mean the same here and there.",
    ...bind("${REPO_PATH}", "${REPO_PATH}"),
    ...bind("${DOCKER_SOCKET:-/var/run/docker.sock}", "/var/run/docker.sock"),
    ...(isSsh ? bind("${HOTPUSH_SSH:?run hotpush init}", `${home}/.ssh`, true) : []),
    ...(hasSigners
      ? bind("${ALLOWED_SIGNERS:?run hotpush init}", "${ALLOWED_SIGNERS:?run hotpush init}", true)
      : []),
    ...(localRemote === null ? [] : bind(quoted(localRemote), quoted(localRemote), true)),
    ...(proxy.kind === "none" ? [] : ["      - hotpush-live:/run/live"]),
    "      - hotpush-state:/var/lib/hotpush",
    ...(proxy.kind === "traefik" ? traefikLabels(payloadUrl) : []),
    ...(proxy.kind === "none" ? [] : networks(proxy.networks)),
    "",
  ];
}
/* biome-ignore-end lint/suspicious/noTemplateCurlyInString: compose replaces what is in ${…} */

/**
 * Behind a proxy, Hotpush has no published port, so only containers on private networks reach it. With a published port,
 * Docker may show every client with the bridge's private address, so anyone could claim any address.
 */
function defaultOf(name: string, { kind }: ReverseProxy): string {
  return name === "TRUSTED_PROXIES" && kind !== "none" ? "private_ranges" : "";
}

/** Until a roll-out writes a container's name into it, each live file holds the name of its service, which resolves as well. */
function seeding(proxy: Exclude<ReverseProxy, { kind: "none" }>): readonly string[] {
  const names = seededServices(proxy).join(" ");
  return [
    '    entrypoint: ["tini", "--", "sh", "-c"]',
    "    command:",
    "      # Before the first roll-out, and after `docker compose down`, a live file names the service itself.",
    "      - |",
    `        for name in ${names}; do`,
    '          host=$$(cat "/run/live/$$name" 2>/dev/null)',
    '          [ -n "$$host" ] && getent hosts "$$host" >/dev/null || echo "$$name" >"/run/live/$$name"',
    "        done",
    "        exec hotpush",
  ];
}

function bind(source: string, target: string, isReadOnly = false): readonly string[] {
  return [
    "      - type: bind",
    `        source: ${source}`,
    `        target: ${target}`,
    ...(isReadOnly ? ["        read_only: true"] : []),
  ];
}

function networks(names: readonly string[]): readonly string[] {
  return names.length === 0 ? [] : [`    networks: [${names.map(key).join(", ")}]`];
}

/** Quotes a name that YAML could read as a number or a keyword. */
function key(name: string): string {
  return /^[A-Za-z][\w-]*$/.test(name) && !/^(?:y|n|yes|no|on|off|true|false|null)$/i.test(name)
    ? name
    : JSON.stringify(name);
}

/** A path as a YAML string without anything that compose would replace. */
function quoted(path: string): string {
  return JSON.stringify(path.replaceAll("$", "$$$$"));
}
