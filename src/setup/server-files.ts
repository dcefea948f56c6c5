import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Document, isScalar, isSeq, parseDocument } from "yaml";
import {
  caddyMount,
  frontAlias,
  frontNetwork,
  liveMount,
  serverComposeProject,
  serverNetwork,
  serviceAlias,
} from "#config/server";
import { kindOf } from "#platform/files";
import { answerLines, countingLines, indented } from "#rollout/caddy-lines";
import { ownImage } from "./own-image.ts";
import type { Machine, ServerPlace } from "./place.ts";
import {
  type Owner,
  type PlannedDirectory,
  type Setting,
  self,
  type WantedFile,
  withSettings,
} from "./planned-file.ts";
import type { SetupProject } from "./project.ts";

export interface ServerFilesOptions {
  readonly place: ServerPlace;
  readonly machine: Machine;
  readonly project: SetupProject;
  /** Ports of the machine that Caddy takes over from this project, beside 80 and 443. */
  readonly ports: readonly { readonly port: number; readonly address: string }[];
  /** Of the page. */
  readonly settings: readonly Setting[];
}

/** The directories of the server, those that contain others first. */
export function serverDirectories({ place, machine }: ServerFilesOptions): readonly PlannedDirectory[] {
  const { files, state } = place;
  const [own, front] = [self(), frontOwner(place)];
  return [
    { path: files.path, mode: 0o755, owner: own },
    { path: files.sitesPath, mode: 0o755, owner: own },
    { path: files.projectsPath, mode: 0o750, owner: { ...own, gid: front.gid } },
    { path: files.secretsPath, mode: 0o700, owner: own },
    { path: state.path, mode: 0o755, owner: own },
    { path: state.run, mode: 0o700, owner: own },
    { path: state.front, mode: 0o700, owner: front },
    socketDirectory(place),
    { path: state.live, mode: 0o750, owner: { ...own, gid: machine.dockerGroup } },
    { path: state.caddy, mode: 0o700, owner: own },
    // The scripts of a project reach their own directory in it, and cannot list the others.
    { path: state.projects, mode: 0o711, owner: own },
  ];
}

/**
 * The files that all projects share. A person may have changed them, so what is there is only added to: variables,
 * checkouts that `run` does not have yet, and ports of Caddy.
 */
export function serverWideFiles(options: ServerFilesOptions): readonly WantedFile[] {
  const owner = self();
  return [
    {
      ...{ name: "compose.yaml", mode: 0o644, owner, purpose: "Caddy, and Hotpush in containers" },
      make: (before) => withNeeds(before ?? serverComposeFile(presentPaths()), options),
    },
    {
      ...{ name: "Caddyfile", mode: 0o644, owner, purpose: "what the sites of all projects import" },
      make: (before) => before ?? serverCaddyfile(),
    },
    {
      ...{ name: ".env", mode: 0o644, owner, purpose: "the values of this machine" },
      make: (before) => withSettings(before ?? "", serverSettings(options)),
    },
  ];
}

/** The user of `front`, as it is or will be in .env. */
export function frontOwner({ env }: Pick<ServerPlace, "env">): Owner {
  const [uid, gid] = (env.FRONT_USER ?? newFrontUser()).split(":").map(Number);
  return { uid: uid ?? 0, gid: gid ?? uid ?? 0 };
}

/** The directory of the socket on which `front` calls `run`: its group may use the socket, and only root may change it. */
export function socketDirectory({ env, state }: Pick<ServerPlace, "env" | "state">): PlannedDirectory {
  return { path: state.socket, mode: 0o750, owner: { ...self(), gid: frontOwner({ env }).gid } };
}

function serverSettings({ place, machine, settings }: ServerFilesOptions): readonly Setting[] {
  const { files, state, ports } = place;
  const values = {
    HOTPUSH_IMAGE: ownImage,
    SERVER_PATH: files.path,
    STATE_PATH: state.path,
    FRONT_USER: newFrontUser(),
    DOCKER_SOCKET: machine.dockerSocket,
    HTTP_PORT: String(ports.http),
    HTTPS_PORT: String(ports.https),
  };
  return [...Object.entries(values).map(([name, value]) => ({ name, value, isOpen: true })), ...settings];
}

/** As another user than root one cannot give files away, so `front` runs as that user. */
function newFrontUser(): string {
  const { uid, gid } = self();
  return uid === 0 ? "9000:9000" : `${uid}:${gid}`;
}

function presentPaths(): readonly string[] {
  return usualCheckoutPaths.filter((path) => kindOf(path) === "directory");
}

function withNeeds(text: string, { project, ports }: ServerFilesOptions): string {
  const withPorts = ports.reduce((before, { port, address }) => withCaddyPort(before, port, address), text);
  const withCheckout = withCheckoutPath(withPorts, project.root, false);
  const remote = remotePath(project);
  return remote === null ? withCheckout : withCheckoutPath(withCheckout, remote, true);
}

/** The remote if it is a directory of this machine, which scripts must see to fetch from it; else null. */
function remotePath({ remote, remoteUrl, root }: SetupProject): string | null {
  if (remote !== null || remoteUrl === null) return null;
  const path = resolve(root, remoteUrl.replace(/^file:\/\//, ""));
  return kindOf(path) === "directory" ? path : null;
}

/** Directories of a machine with checkouts in them. `run` has those that exist, at their own paths. */
export const usualCheckoutPaths: readonly string[] = ["/srv", "/opt", "/home", "/root", "/var/www"];

/**
 * Where `front` sees its own directory of the state, and that of the socket of `run`. The image has nothing there: a directory
 * of the image above it might be closed to its user.
 */
const [frontMount, socketMount] = ["/state", "/socket"];

/* biome-ignore-start lint/suspicious/noTemplateCurlyInString: compose replaces what is in ${…} */

/**
 * The text of the server's compose.yaml.
 *
 * @param checkoutPaths the directories that `run` has at their own paths
 */
export function serverComposeFile(checkoutPaths: readonly string[]): string {
  const lines = [
    "# Hotpush on this machine, for all its projects: written by `hotpush init`, and yours to change. init only adds to it.",
    "# The values are in .env. To apply a change: docker compose up --detach --wait (in this directory)",
    `name: ${serverComposeProject}`,
    "",
    "services:",
    ...caddyLines,
    ...frontLines,
    ...runLines,
    ...checkoutPaths.flatMap((path) => bind(path, path)),
    "",
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
  `    networks: [${serverNetwork}, ${frontNetwork}]`,
  "",
];

const frontLines = [
  "  # Reads everything from outside: verifies deliveries and stores the pushes, and shows the page if that has an address",
  "  # (`hotpush init --page`). It has no way out, no Docker, no repository and no secret of a script. `run` checks the rights of",
  "  # each visitor.",
  "  front:",
  ...imageLines("front"),
  '    user: "${FRONT_USER:?run hotpush init}"',
  "    read_only: true",
  "    cap_drop: [ALL]",
  "    security_opt: [no-new-privileges:true]",
  "    tmpfs: [/tmp]",
  "    environment:",
  "      PROJECTS_PATH: ${SERVER_PATH:?run hotpush init}/projects",
  `      STATE_PATH: ${frontMount}`,
  `      FRONT_SOCKET: ${socketMount}/front.sock`,
  "      PAGE_URL: ${PAGE_URL:-}",
  "      TRUSTED_PROXIES: private_ranges",
  "    volumes:",
  ...bind("${SERVER_PATH}/projects", "${SERVER_PATH}/projects", true),
  ...bind("${STATE_PATH}/front", frontMount),
  ...bind("${STATE_PATH}/socket", socketMount, true),
  "    networks:",
  `      ${frontNetwork}:`,
  "        # A service of a project may be called front too.",
  `        aliases: [${frontAlias}]`,
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
  "      PROJECTS_PATH: ${SERVER_PATH}/projects",
  "      SECRETS_PATH: ${SERVER_PATH}/secrets",
  "      STATE_PATH: ${STATE_PATH}/run",
  "      SPOOL_PATH: ${STATE_PATH}/front/spool",
  "      PAGE_URL: ${PAGE_URL:-}",
  "      METRICS_NETWORKS: ${METRICS_NETWORKS:-}",
  "      FRONT_SOCKET: ${STATE_PATH}/socket/front.sock",
  "      SERVER_PATH: ${SERVER_PATH}",
  "      SERVER_STATE_PATH: ${STATE_PATH}",
  `    networks: [${serverNetwork}]`,
  "    volumes:",
  ...bind("${DOCKER_SOCKET:-/var/run/docker.sock}", "/var/run/docker.sock"),
  ...bind("${SERVER_PATH}", "${SERVER_PATH}"),
  "      # Whole: each script, as another user, has to reach its own directory in it.",
  ...bind("${STATE_PATH}", "${STATE_PATH}"),
  ...bind("${STATE_PATH}/live", liveMount),
  "      # git and ssh need a name for the owner of a checkout.",
  ...bind("/etc/passwd", "/etc/passwd", true),
  ...bind("/etc/group", "/etc/group", true),
  "      # The checkouts, at the paths that they have on the machine: so the paths in compose files mean the same.",
];

const networkLines = [
  "networks:",
  "  # Sorts before those of the projects (hotpush-<name>), so that it stays Caddy's gateway.",
  `  ${serverNetwork}:`,
  `    name: ${serverNetwork}`,
  `  ${frontNetwork}:`,
  `    name: ${frontNetwork}`,
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

/** Where it lists what `run` has of the machine, and the ports of Caddy. */
const runVolumes = ["services", "run", "volumes"] as const;
const caddyPorts = ["services", "caddy", "ports"] as const;

/** Whether `run` of the server in `text` has the file or directory at `path`. */
export function hasCheckoutPath(text: string, path: string): boolean {
  return listIn(parseDocument(text), runVolumes).some((volume) => {
    const mounted = targetOf(volume);
    return path === mounted || path.startsWith(`${mounted}/`);
  });
}

function targetOf(volume: unknown): string {
  const isObject = typeof volume === "object" && volume !== null && "target" in volume;
  const target =
    typeof volume === "string" ? (volume.split(":")[1] ?? volume) : isObject ? String(volume.target) : "";
  return target.replaceAll("$$", "$");
}

/** The text with the directory at `path` among those that `run` has at their own paths. */
export function withCheckoutPath(text: string, path: string, isReadOnly: boolean): string {
  if (hasCheckoutPath(text, path)) return text;
  const escaped = path.replaceAll("$", "$$$$");
  const volume = { type: "bind", source: escaped, target: escaped, ...(isReadOnly && { read_only: true }) };
  return withItems(text, runVolumes, [volume]);
}

/** The text with `port` among the ports of Caddy, published at `address` of the machine; "" is all of them. */
export function withCaddyPort(text: string, port: number, address: string): string {
  const bound = address.includes(":") ? `[${address}]` : address;
  return withItems(text, caddyPorts, [`${bound === "" ? "" : `${bound}:`}${port}:${port}`]);
}

/** The text without `port` among the ports of Caddy, as `withCaddyPort` adds it. */
export function withoutCaddyPort(text: string, port: number): string {
  const document = parseDocument(text);
  const published = new RegExp(`^(?:.*:)?${port}:${port}$`);
  const index = listIn(document, caddyPorts).findIndex((one) => published.test(String(one)));
  if (index < 0) return text;
  document.deleteIn([...caddyPorts, index]);
  return document.toString(asWritten);
}

/** Whether the text has a service of this name. */
export function hasService(text: string, name: string): boolean {
  return parseDocument(text).hasIn(["services", name]);
}

/**
 * The text of this version, with what was added to the one in `text` for projects: checkouts of `run` and ports of Caddy.
 */
export function renewedComposeFile(text: string): string {
  const document = parseDocument(text);
  const [volumes, ports] = [listIn(document, runVolumes), listIn(document, caddyPorts)];
  const renewed = serverComposeFile(volumes.flatMap(checkoutPathOf));
  return withItems(withItems(renewed, runVolumes, volumes), caddyPorts, ports);
}

/** A directory that `run` may change, at its own path. */
function checkoutPathOf(volume: unknown): readonly string[] {
  if (typeof volume !== "object" || volume === null || "read_only" in volume) return [];
  const { source, target } = volume as Readonly<Record<string, unknown>>;
  return typeof source === "string" && source === target && !source.includes("$") ? [source] : [];
}

/** With these options, a text of ours stays as it is. Of one that a person changed, the spacing may change. */
const asWritten = { lineWidth: 0, flowCollectionPadding: false };

/** The text with those of `items` at the end of the list at `path` that are not in it. */
function withItems(text: string, path: readonly string[], items: readonly unknown[]): string {
  const document = parseDocument(text);
  const present = listIn(document, path);
  const missing = items.filter((item) => !present.some((one) => isDeepStrictEqual(one, item)));
  if (missing.length === 0) return text;
  for (const item of missing) {
    const node = document.createNode(item);
    // YAML 1.1 reads some ports without quotes as a number.
    if (isScalar(node) && typeof item === "string") node.type = "QUOTE_DOUBLE";
    document.addIn(path, node);
  }
  return document.toString(asWritten);
}

function listIn(document: Document.Parsed, path: readonly string[]): readonly unknown[] {
  const list = document.getIn(path);
  return isSeq(list) ? (list.toJSON() as readonly unknown[]) : [];
}

/** The text of the server's Caddyfile: what the sites of all projects import. */
export function serverCaddyfile(): string {
  return `# Caddy of this machine, for all projects: written by \`hotpush init\`, and yours to change. Their sites are in sites/.
# \`run\` loads a change of these files within a second or two. If Caddy rejects it, the old configuration stays in force.
{
	# A socket that only root and users of Docker reach; a port could be reached by every container.
	admin unix/${liveMount}/admin.sock|0666
	grace_period 30s
}

# import service <project> <service> <port>
(service) {
	# The live file holds the name of the container that gets the requests. Caddy reads it on each one, so that a roll-out
	# needs no reload: a reload would cut connections.
	reverse_proxy {file.${liveMount}/{args[0]}/{args[1]}}:{args[2]} {
		lb_try_duration 5s
		lb_try_interval 50ms
	}

	import counted {args[0]}

	# Before a reload, \`run\` makes clients close their kept connections.
	@closing vars {file.${liveMount}/closing} yes
	header @closing Connection close

	# If the live file names nothing that runs. Only requests that reached no container are sent on: one that was cut off
	# may have done its work already.
	handle_errors 502 503 {
		@unreached {
			expression \`{err.message}.contains("dial")\`
			not path /webhook /webhook/{args[0]}
		}
${indented(
  answerLines.map((line) => line.replace(" ", " @unreached ")),
  2,
)}
		reverse_proxy @unreached ${serviceAlias("{args[1]}", "{args[0]}")}:{args[2]} {
			lb_try_duration 10s
			lb_try_interval 50ms
		}
	}
}

# import counted <project>: a roll-out counts the requests by this log, which has nothing that identifies a person.
(counted) {
${indented(countingLines(liveMount, "{args[0]}"), 1)}
	# The line with log_skip is also about other logs of the site. Without it, all requests are logged at all times.
}

# import deliveries <project>: /webhook of a site gets the deliveries of the project's git host.
(deliveries) {
	@deliveries path /webhook /webhook/{args[0]}
	handle @deliveries {
		rewrite /webhook/{args[0]}
		import front
	}
}

(front) {
	# While \`front\` restarts, a delivery waits instead of being lost: git hosts send it once and wait for 10 s.
	reverse_proxy ${frontAlias}:9000 {
		lb_try_duration 9s
		lb_try_interval 50ms
		transport http {
			# On a kept connection that is just closing, a delivery would be cut off, and a POST is not sent twice.
			keepalive off
		}
	}
}

# Every other host: a machine without a name receives deliveries at http://<its address>/webhook/<project>.
http:// {
	@delivery path_regexp ^/webhook/[a-z0-9-]+$
	handle @delivery {
		import front
	}
	handle {
		respond "No project of this machine has this address." 404
	}
}

https:// {
	respond "No project of this machine has this address." 404
}

import ${caddyMount}/sites/*.caddy
`;
}
