import { isMap, isScalar, isSeq, parseDocument } from "yaml";
import {
  caddyMount,
  liveMount,
  machineNetwork,
  machineProject,
  pageAlias,
  receiveAlias,
  receiveNetwork,
} from "../config/machine-part.ts";

/** Directories of a machine with checkouts in them. `run` has those that exist, at their own paths. */
export const usualCheckoutPaths: readonly string[] = ["/srv", "/opt", "/home", "/root", "/var/www"];

/**
 * Where `receive` and `page` see their own directory of the state. The image has nothing there: a directory of the image
 * above it might be closed to their users.
 */
const roleMount = "/state";

/* biome-ignore-start lint/suspicious/noTemplateCurlyInString: compose replaces what is in ${…} */

/**
 * The text of the machine part's compose.yaml.
 *
 * @param checkoutPaths the directories that `run` has at their own paths
 */
export function machineComposeFile(checkoutPaths: readonly string[]): string {
  const lines = [
    "# Hotpush on this machine, for all its projects: written by `hotpush init`, and yours to change. init only adds to it.",
    "# The values are in .env. To apply a change: docker compose up --detach --wait (in this directory)",
    `name: ${machineProject}`,
    "",
    "services:",
    ...caddyLines,
    ...receiveLines,
    ...runLines,
    ...checkoutPaths.flatMap((path) => bind(path, path)),
    "",
    ...pageLines,
    ...networkLines,
  ];
  return `${lines.join("\n")}\n`;
}

const caddyLines = [
  "  # Takes the requests of all projects, and the deliveries of git hosts. `run` joins it to the network of each project.",
  "  caddy:",
  "    image: ${CADDY_IMAGE:-caddy:2}",
  "    restart: unless-stopped",
  "    ports:",
  '      - "${HTTP_PORT:-80}:80"',
  '      - "${HTTPS_PORT:-443}:443"',
  '      - "${HTTPS_PORT:-443}:443/udp"',
  "    volumes:",
  ...bind("./Caddyfile", `${caddyMount}/Caddyfile`, true),
  ...bind("./sites", `${caddyMount}/sites`, true),
  ...bind("${STATE_PATH:?run hotpush init}/live", liveMount),
  ...bind("${STATE_PATH}/caddy", "/data"),
  `    networks: [${machineNetwork}, ${receiveNetwork}]`,
  "",
];

const receiveLines = [
  "  # Verifies deliveries and stores the pushes. It has no way out, no Docker, no repository and no secret of a script.",
  "  receive:",
  ...imageLines("receive"),
  '    user: "${RECEIVE_USER:?run hotpush init}"',
  "    read_only: true",
  "    cap_drop: [ALL]",
  "    security_opt: [no-new-privileges:true]",
  "    tmpfs: [/tmp]",
  "    environment:",
  "      PROJECTS_PATH: ${MACHINE_PATH:?run hotpush init}/projects",
  `      STATE_PATH: ${roleMount}`,
  `      INBOX_SOCKET: ${roleMount}/inbox.sock`,
  "      TRUSTED_PROXIES: private_ranges",
  "    volumes:",
  ...bind("${MACHINE_PATH}/projects", "${MACHINE_PATH}/projects", true),
  ...bind("${STATE_PATH}/receive", roleMount),
  "    networks:",
  `      ${receiveNetwork}:`,
  "        # A service of a project may be called receive too.",
  `        aliases: [${receiveAlias}]`,
  "",
];

const runLines = [
  "  # Runs the deploy scripts, each as the owner of its checkout. It has no port.",
  "  run:",
  ...imageLines("run"),
  "    read_only: true",
  "    cap_add: [SYS_PTRACE] # To see which processes of scripts, which run as other users, are left.",
  "    tmpfs: [/tmp]",
  "    environment:",
  "      PROJECTS_PATH: ${MACHINE_PATH}/projects",
  "      SECRETS_PATH: ${MACHINE_PATH}/secrets",
  "      STATE_PATH: ${STATE_PATH}/run",
  "      INBOX_SOCKET: ${STATE_PATH}/receive/inbox.sock",
  "      PAGE_URL: ${PAGE_URL:-}",
  "      METRICS_NETWORKS: ${METRICS_NETWORKS:-}",
  "      PAGE_SOCKET: ${STATE_PATH}/page/page.sock",
  "      MACHINE_PATH: ${MACHINE_PATH}",
  "      MACHINE_STATE_PATH: ${STATE_PATH}",
  `    networks: [${machineNetwork}]`,
  "    volumes:",
  ...bind("${DOCKER_SOCKET:-/var/run/docker.sock}", "/var/run/docker.sock"),
  ...bind("${MACHINE_PATH}", "${MACHINE_PATH}"),
  "      # Whole: each script, as another user, has to reach its own directory in it.",
  ...bind("${STATE_PATH}", "${STATE_PATH}"),
  ...bind("${STATE_PATH}/live", liveMount),
  "      # git and ssh need a name for the owner of a checkout.",
  ...bind("/etc/passwd", "/etc/passwd", true),
  ...bind("/etc/group", "/etc/group", true),
  "      # The checkouts, at the paths that they have on the machine: so the paths in compose files mean the same.",
];

const pageLines = [
  "  # Shows people what is deployed, if it has an address (`hotpush init --page`). It has nothing but a socket of `run`, which",
  "  # checks the rights of each visitor.",
  "  page:",
  "    profiles: [page]",
  ...imageLines("page"),
  '    user: "${PAGE_USER:-65534:65534}"',
  "    read_only: true",
  "    cap_drop: [ALL]",
  "    security_opt: [no-new-privileges:true]",
  "    tmpfs: [/tmp]",
  "    environment:",
  "      PAGE_URL: ${PAGE_URL:-}",
  '      PAGE_PORT: "9001"',
  `      PAGE_SOCKET: ${roleMount}/page.sock`,
  "      TRUSTED_PROXIES: private_ranges",
  "    volumes:",
  ...bind("${STATE_PATH}/page", roleMount, true),
  "    networks:",
  `      ${receiveNetwork}:`,
  `        aliases: [${pageAlias}]`,
  "",
];

const networkLines = [
  "networks:",
  "  # Sorts before those of the projects (hotpush-<name>), so that it stays Caddy's gateway.",
  `  ${machineNetwork}:`,
  `    name: ${machineNetwork}`,
  `  ${receiveNetwork}:`,
  `    name: ${receiveNetwork}`,
  "    internal: true",
];

function imageLines(role: string): readonly string[] {
  return [
    "    image: ${HOTPUSH_IMAGE:?run hotpush init}",
    "    pull_policy: never # `hotpush init` has built it on this machine.",
    `    command: [${role}]`,
    "    restart: unless-stopped",
  ];
}
/* biome-ignore-end lint/suspicious/noTemplateCurlyInString: compose replaces what is in ${…} */

/** Whether `run` of the machine part in `text` has the file or directory at `path`. */
export function hasCheckoutPath(text: string, path: string): boolean {
  const volumes = readList(text, runVolumes).map(targetOf);
  return volumes.some((mounted) => path === mounted || path.startsWith(`${mounted}/`));
}

/** The text with the directory at `path` among those that `run` has at their own paths. */
export function withCheckoutPath(text: string, path: string, isReadOnly: boolean): string {
  if (hasCheckoutPath(text, path)) return text;
  return withListItem(text, runVolumes, bind(path, path, isReadOnly));
}

/** The text with `port` among the ports of Caddy, published at `address` of the machine; "" is all of them. */
export function withCaddyPort(text: string, port: number, address: string): string {
  const bound = address.includes(":") ? `[${address}]` : address;
  const published = `${bound === "" ? "" : `${bound}:`}${port}:${port}`;
  if (readList(text, caddyPorts).includes(published)) return text;
  return withListItem(text, caddyPorts, [`      - "${published}"`]);
}

/** The text without `port` among the ports of Caddy, as `withCaddyPort` adds it. */
export function withoutCaddyPort(text: string, port: number): string {
  const document = parseDocument(text);
  const list = document.getIn(caddyPorts);
  const published = new RegExp(`^(?:.*:)?${port}:${port}$`);
  const item = isSeq(list) && list.items.find((one) => isScalar(one) && published.test(String(one.value)));
  if (!isSeq(list) || !isScalar(item) || !item.range) return text;
  const [start, end] = [text.lastIndexOf("\n", item.range[0]), text.indexOf("\n", item.range[1])];
  const line = text.slice(start + 1, end);
  if (/^ *- *\S+$/.test(line)) return text.slice(0, start) + text.slice(end);
  list.items.splice(list.items.indexOf(item), 1);
  return document.toString({ lineWidth: 0 });
}

/** Whether the text has a service of this name. */
export function hasService(text: string, name: string): boolean {
  return name in servicesIn(text);
}

type Definitions = Readonly<Record<string, unknown>>;

function servicesIn(text: string): Definitions {
  const { services } = (parseDocument(text).toJSON() ?? {}) as { readonly services?: Definitions };
  return services ?? {};
}

/** Where it lists what `run` has of the machine. */
export const runVolumes = ["services", "run", "volumes"] as const;
/** Where it lists the ports of Caddy. */
export const caddyPorts = ["services", "caddy", "ports"] as const;

/** The list at `path` in a text in YAML. */
export function readList(text: string, path: readonly string[]): readonly unknown[] {
  const list = parseDocument(text).getIn(path);
  return isSeq(list) ? (list.toJSON() as readonly unknown[]) : [];
}

function targetOf(volume: unknown): string {
  const isObject = typeof volume === "object" && volume !== null && "target" in volume;
  const target =
    typeof volume === "string" ? (volume.split(":")[1] ?? volume) : isObject ? String(volume.target) : "";
  // As `quotedPath` writes it.
  return target.replaceAll("$$", "$");
}

/** Adds lines at the end of a list. Every other line stays as a person wrote it. */
export function withListItem(text: string, path: readonly string[], lines: readonly string[]): string {
  const document = parseDocument(text);
  const list = document.getIn(path);
  const last = isSeq(list) ? list.items.at(-1) : undefined;
  const end = isSeq(list) && !list.flow ? (last as { range?: readonly number[] }).range?.[1] : undefined;
  if (end === undefined) {
    const [item] = parseDocument(lines.join("\n")).toJSON() as readonly unknown[];
    document.addIn(path, document.createNode(item));
    return document.toString({ lineWidth: 0 });
  }
  const at = text.indexOf("\n", isMap(last) ? end - 1 : end);
  const [before, after] = at < 0 ? [text, "\n"] : [text.slice(0, at), text.slice(at)];
  return `${before}\n${lines.join("\n")}${after}`;
}

function bind(source: string, target: string, isReadOnly = false): readonly string[] {
  return [
    "      - type: bind",
    `        source: ${quotedPath(source)}`,
    `        target: ${quotedPath(target)}`,
    ...(isReadOnly ? ["        read_only: true"] : []),
  ];
}

/** A path as it stands if YAML reads it as one. Compose replaces what follows a dollar sign, except in our variables. */
function quotedPath(path: string): string {
  const safe = path.startsWith("${") ? path : path.replaceAll("$", "$$$$");
  return /^[\w./${}:?-]+$/.test(safe) ? safe : JSON.stringify(safe);
}
