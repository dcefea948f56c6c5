import { variables } from "../config.ts";
import { ownEnvFile } from "./project.ts";
import { caddyfileName, seededServices } from "./proxy-config.ts";
import type { Front, PublishedPort } from "./reverse-proxy.ts";
import { isLoopback } from "./webhook-address.ts";

/** Settings of the service that belong to the container. */
export const notPassedOn: readonly string[] = ["WEBHOOK_PORT", "WEBHOOK_HOST", "REPO_PATH", "STATE_PATH"];
/** Settings that a person may write into .env. */
const passedOn = Object.keys(variables).filter((name) => !notPassedOn.includes(name));

export interface ComposeFileOptions {
  readonly front: Front;
  /** Where the git host sends to. */
  readonly payloadUrl: URL;
  /** The name of the image that Hotpush runs from. */
  readonly image: string;
  /** Caddy gets a certificate for a name of its own. */
  readonly hasCertificate: boolean;
  /** The remote is reached by ssh: keys are needed. */
  readonly isSsh: boolean;
  /** Where the container's user has its home. */
  readonly home: "/root" | "/home/node";
  /** A remote that is a directory of this machine, else null. */
  readonly localRemote: string | null;
  /** Whether ALLOWED_SIGNERS names a file of this machine. */
  readonly hasSigners: boolean;
  /** The name of the added proxy; another one where the project has a `caddy` of its own. */
  readonly proxyName: string;
}

/** The text of compose.hotpush.yaml: Hotpush, and what stands in front of it. What differs between machines is in .env. */
export function composeFile(options: ComposeFileOptions): string {
  const { front } = options;
  const blocks = [
    header,
    "services:",
    ...appBlock(front),
    ...proxyBlock(options),
    ...hotpushBlock(options),
    "volumes:",
    ...(front.kind === "none" ? [] : ["  hotpush-live:"]),
    ...(front.kind === "new-caddy" ? ["  hotpush-caddy:"] : []),
    "  hotpush-state:",
  ];
  return `${blocks.join("\n")}\n`;
}

const header = `# Hotpush's part of this project, written by \`hotpush init\`; running that again keeps it up to date.
# COMPOSE_FILE in .env joins it to your compose file, which stays as it is. What belongs to this machine is in .env.`;

function appBlock(front: Front): readonly string[] {
  if (front.kind === "caddy") {
    return [`  ${key(front.service)}:`, "    volumes:", "      - hotpush-live:/run/live", ""];
  }
  if (front.kind !== "new-caddy") return [];
  return [
    `  ${key(front.service)}:`,
    "    # Caddy has them now. Without them the old and the new container can run side by side.",
    "    ports: !reset []",
    ...(front.hasContainerName ? ["    container_name: !reset null"] : []),
    "",
  ];
}

function proxyBlock({ front, hasCertificate, proxyName }: ComposeFileOptions): readonly string[] {
  if (front.kind !== "new-caddy") return [];
  return [
    `  ${proxyName}:`,
    "    image: caddy:2",
    "    restart: unless-stopped",
    `    depends_on: [${key(front.service)}]`,
    "    ports:",
    ...portsOf(front.published, hasCertificate).map((port) => `      - "${port}"`),
    "    environment:",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: compose replaces it
    "      SITE: ${SITE:?run hotpush init}",
    "    volumes:",
    `      - \${REPO_PATH}/${caddyfileName}:/etc/caddy/Caddyfile:ro`,
    "      - hotpush-live:/run/live",
    "      - hotpush-caddy:/data",
    ...networks(front.networks),
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
  const { front, image, isSsh, home, localRemote, hasSigners, payloadUrl } = options;
  return [
    "  hotpush:",
    `    image: \${HOTPUSH_IMAGE:-${image}}`,
    "    pull_policy: never # `hotpush init` has built it on this machine.",
    "    restart: unless-stopped",
    '    user: "${HOTPUSH_USER:-0:0}"',
    '    group_add: ["${DOCKER_GID:-0}"]',
    "    read_only: true",
    "    tmpfs: [/tmp]",
    ...(front.kind === "none" ? ['    ports: ["${WEBHOOK_PORT:-9000}:9000"]'] : seeding(front)),
    "    env_file:",
    "      # What DEPLOY_ENV names, HOTPUSH_MIN_FREE, GIT_SSH_COMMAND and the like: values for git, docker and deploy.sh.",
    `      - path: \${REPO_PATH}/${ownEnvFile}`,
    "        required: false",
    "    environment:",
    "      REPO_PATH: ${REPO_PATH:?run hotpush init}",
    ...passedOn.map((name) => `      ${name}: \${${name}:-${defaultOf(name, front)}}`),
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
    ...(front.kind === "none" ? [] : ["      - hotpush-live:/run/live"]),
    "      - hotpush-state:/var/lib/hotpush",
    ...(front.kind === "traefik" ? traefikLabels(payloadUrl) : []),
    ...(front.kind === "none" ? [] : networks(front.networks)),
    "",
  ];
}
/* biome-ignore-end lint/suspicious/noTemplateCurlyInString: compose replaces what is in ${…} */

/**
 * A proxy reaches Hotpush over a private network, and without a published port nothing else does. With one, Docker may
 * have every client come from the bridge's private address, so anybody could claim any address.
 */
function defaultOf(name: string, { kind }: Front): string {
  return name === "TRUSTED_PROXIES" && kind !== "none" ? "private_ranges" : "";
}

/** Until a roll-out writes a container's name there, each live file holds the name of its service, which leads there too. */
function seeding(front: Exclude<Front, { kind: "none" }>): readonly string[] {
  const names = seededServices(front).join(" ");
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

/**
 * By default the longest rule comes first, which would be the app's. A router takes either requests by TLS or the others:
 * TLS may end before Traefik.
 */
function traefikLabels(payloadUrl: URL): readonly string[] {
  const host = isLoopback(payloadUrl) ? "" : `Host(\`${payloadUrl.hostname}\`) && `;
  const router = (name: string) => [
    `      traefik.http.routers.${name}.rule: ${host}Path(\`/webhook\`)`,
    `      traefik.http.routers.${name}.priority: "1000"`,
    `      traefik.http.routers.${name}.service: hotpush`,
  ];
  const isHttps = payloadUrl.protocol === "https:";
  return [
    "    labels:",
    '      traefik.enable: "true"',
    ...router("hotpush"),
    ...(isHttps ? [...router("hotpush-tls"), '      traefik.http.routers.hotpush-tls.tls: "true"'] : []),
    '      traefik.http.services.hotpush.loadbalancer.server.port: "9000"',
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

/** Names that YAML could take for a number or a word of its own are quoted. */
function key(name: string): string {
  return /^[A-Za-z][\w-]*$/.test(name) && !/^(?:y|n|yes|no|on|off|true|false|null)$/i.test(name)
    ? name
    : JSON.stringify(name);
}

/** A path as a YAML string in which compose replaces nothing. */
function quoted(path: string): string {
  return JSON.stringify(path.replaceAll("$", "$$$$"));
}
