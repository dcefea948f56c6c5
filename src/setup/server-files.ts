import { readdirSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { isSeq, parseDocument } from "yaml";
import { attempt, kindOf, readUser, type SystemUser, statOf } from "#platform/files";
import { ownerOf } from "#runner/script";
import { canBeMounted, readPaths } from "./compose-paths.ts";
import type { ServerPlace } from "./machine.ts";
import {
  type PlannedDirectory,
  readIfThere,
  type Setting,
  self,
  type WantedFile,
  withSettings,
} from "./planned-file.ts";
import type { SetupProject } from "./project.ts";
import { ownImage } from "./start.ts";

/** The directories of the server, those that contain others first. */
export function serverDirectories(place: ServerPlace): readonly PlannedDirectory[] {
  const { files, state, dockerSocket } = place;
  const own = self();
  const front = frontOwner(place);
  return [
    { path: files.path, mode: 0o755, owner: own },
    { path: files.sitesPath, mode: 0o755, owner: own },
    { path: files.projectsPath, mode: 0o750, owner: { ...own, gid: front.gid } },
    { path: files.secretsPath, mode: 0o700, owner: own },
    { path: state.path, mode: 0o755, owner: own },
    { path: state.run, mode: 0o700, owner: own },
    { path: state.front, mode: 0o700, owner: front },
    // The group of `front` may use the socket in it, and only root may change it.
    { path: state.socket, mode: 0o750, owner: { ...own, gid: front.gid } },
    { path: state.live, mode: 0o750, owner: { ...own, gid: statOf(dockerSocket)?.gid ?? 0 } },
    { path: state.caddy, mode: 0o700, owner: own },
    // The scripts of a project reach their own directory in it, and cannot list the others.
    { path: state.projects, mode: 0o711, owner: own },
  ];
}

/**
 * The files that all projects share. A person may have changed them, so what is there is only added to: variables, and
 * checkouts that `run` does not have yet.
 *
 * @param settings those of the page
 */
export function serverWideFiles(
  place: ServerPlace,
  project: SetupProject,
  settings: readonly Setting[],
): readonly WantedFile[] {
  const usual = usualCheckoutPaths.filter((path) => kindOf(path) === "directory");
  // What is below /tmp is gone after a reboot, and `run` would not start without it.
  const read = readPaths(project).filter((path) => !path.startsWith("/tmp/"));
  const readOnly = [remotePath(project) ?? [], read].flat();
  const host = project.remote?.hostname ?? "";
  const address = addressInHosts(host);
  // Git, ssh and Docker read the settings of the owner there, as whom the script runs.
  const own = [project.root, ...[scriptUser(project.root).home].filter(canBeMounted)];
  const compose: Make = (before) => {
    const checkouts = withoutMissing(before ?? serverComposeFile(usual));
    const text = own.reduce((all, path) => withCheckoutPath(all, path, false), checkouts);
    const full = readOnly.reduce((all, path) => withCheckoutPath(all, path, true), text);
    const asOnMachine = withVolumes(full, machineFiles());
    return address === null ? asOnMachine : withHost(asOnMachine, host, address);
  };
  const all = [...serverSettings(place), ...settings];
  return wideFiles(compose, (before) => before ?? serverCaddyfile(), all);
}

/** The same files as this version of Hotpush has them, with what was added for projects. */
export function renewedFiles(image: string): readonly WantedFile[] {
  const setting = { name: "HOTPUSH_IMAGE", value: image, isOpen: false };
  return wideFiles((before) => renewedComposeFile(withoutMissing(before ?? "")), serverCaddyfile, [setting]);
}

type Make = WantedFile["make"];

function wideFiles(compose: Make, caddyfile: Make, settings: readonly Setting[]): readonly WantedFile[] {
  const values: Make = (before) => withSettings(before ?? "", settings);
  const rows = [
    ["compose.yaml", "Caddy, and Hotpush in containers", compose],
    ["Caddyfile", "what the sites of all projects import", caddyfile],
    [".env", "the values of this machine", values],
  ] as const;
  return rows.map(([name, purpose, make]) => ({ name, mode: 0o644, owner: self(), purpose, make }));
}

/** The user of `front`, as it is or will be in .env. */
export function frontOwner({ env }: Pick<ServerPlace, "env">) {
  const [uid, gid] = (env.FRONT_USER ?? newFrontUser()).split(":").map(Number);
  return { uid: uid ?? 0, gid: gid ?? uid ?? 0 };
}

function serverSettings({ files, state, ports, dockerSocket }: ServerPlace): readonly Setting[] {
  const values = {
    HOTPUSH_IMAGE: ownImage,
    SERVER_PATH: files.path,
    STATE_PATH: state.path,
    FRONT_USER: newFrontUser(),
    DOCKER_SOCKET: dockerSocket,
    HTTP_PORT: String(ports.http),
    HTTPS_PORT: String(ports.https),
  };
  return Object.entries(values).map(([name, value]) => ({ name, value, isOpen: true }));
}

/** As another user than root one cannot give files away, so `front` runs as that user. */
function newFrontUser(): string {
  const { uid, gid } = self();
  return uid === 0 ? "9000:9000" : `${uid}:${gid}`;
}

/** The user as whom `run` runs the scripts of the checkout `root`. */
function scriptUser(root: string): SystemUser {
  const { uid, gid } = statOf(root) ?? self();
  return ownerOf(root) ?? readUser(uid, gid);
}

/** The remote if it is a directory of this machine, which scripts must see to fetch from it; else null. */
function remotePath({ remote, remoteUrl, root }: SetupProject): string | null {
  if (remote !== null || remoteUrl === null) return null;
  const path = resolve(root, remoteUrl.replace(/^file:\/\//, ""));
  return kindOf(path) === "directory" ? path : null;
}

/** The address of `name` in this machine's hosts file, which containers do not read; null for one of the machine itself. */
function addressInHosts(name: string): string | null {
  const lines = (readIfThere("/etc/hosts") ?? "").split("\n");
  const rows = lines.map((line) => line.replace(/#.*/, "").trim().split(/\s+/));
  const [address = "::1"] = rows.find(([, ...names]) => names.includes(name)) ?? [];
  return /^(?:127\.|::1$)/.test(address) ? null : address;
}

/** The address that `run` has for this name, if the hosts file of this machine does not have the name any more; else null. */
export function hostsLeft({ files }: Pick<ServerPlace, "files">, name: string): string | null {
  const hosts = parseDocument(readIfThere(files.composeFile) ?? "").toJS()?.services?.run?.extra_hosts ?? {};
  const rows = Array.isArray(hosts)
    ? hosts.map((row) => String(row).split(/[:=](.*)/s))
    : Object.entries(hosts);
  const [, address] = rows.find(([host]) => host === name) ?? [];
  return isIP(String(address)) > 0 && addressInHosts(name) === null ? String(address) : null;
}

/** Where distributions keep the certificate authorities that were added to a machine, and all of them in one file. */
const ownAuthorities = ["/usr/local/share/ca-certificates", "/etc/pki/ca-trust/source/anchors"];
const authorityFiles = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/** The settings of this machine by which git and ssh find and trust a remote, if it has any, at the paths where `run` reads them. */
function machineFiles(): readonly unknown[] {
  const hasOwn = ownAuthorities.some((path) => attempt(() => readdirSync(path).length > 0, false));
  const authorities = hasOwn ? authorityFiles.find((path) => kindOf(path) === "file") : undefined;
  const rows = [
    ["/etc/ssh", "/etc/ssh"],
    // The image has settings of its own, which include it.
    ["/etc/gitconfig", "/etc/gitconfig.machine"],
    [authorities ?? "", authorityFiles[0]],
  ] as const;
  const present = rows.filter(([source]) => ["file", "directory"].includes(kindOf(source)));
  return present.map(([source, target]) => ({ type: "bind", source, target, read_only: true }));
}

/** Directories of a machine with checkouts in them. `run` has those that exist, at their own paths. */
const usualCheckoutPaths: readonly string[] = ["/srv", "/opt", "/home", "/root", "/var/www"];

/**
 * The text of the server's compose.yaml.
 *
 * @param checkoutPaths the directories that `run` has at their own paths
 */
export function serverComposeFile(checkoutPaths: readonly string[]): string {
  return checkoutPaths.reduce((text, path) => withCheckoutPath(text, path, false), template("compose.yaml"));
}

/** The text of the server's Caddyfile: what the sites of all projects import. */
export const serverCaddyfile = () => template("Caddyfile");

function template(name: "compose.yaml" | "Caddyfile"): string {
  return readFileSync(join(import.meta.dirname, "templates", name), "utf8");
}

/** Where it lists what `run` has of the machine, and the names that only its hosts file knows. */
const runVolumes = ["services", "run", "volumes"] as const;
const runHosts = ["services", "run", "extra_hosts"] as const;

/**
 * The text with the directory at `path` among those that `run` has at their own paths, if none of them has it in it. One that can be
 * read only holds no checkout, which gets a place of its own in it.
 */
export function withCheckoutPath(text: string, path: string, isReadOnly: boolean): string {
  const volumes = volumesIn(text);
  const around = volumes.filter((one) => `${path}/`.startsWith(`${targetOf(one)}/`));
  const nearest = around.toSorted((a, b) => targetOf(b).length - targetOf(a).length)[0];
  if (nearest !== undefined && (isReadOnly || !isForReading(nearest))) return text;
  const escaped = path.replaceAll("$", "$$$$");
  const volume = { type: "bind", source: escaped, target: escaped, ...(isReadOnly && { read_only: true }) };
  if (nearest === undefined || targetOf(nearest) !== path) return withVolumes(text, [volume]);
  const document = parseDocument(text);
  document.setIn([...runVolumes, volumes.indexOf(nearest)], document.createNode(volume));
  return document.toString(asWritten);
}

function isForReading(volume: unknown): boolean {
  const [, , access = ""] = typeof volume === "string" ? volume.split(":") : [];
  return Object(volume).read_only === true || access.split(",").includes("ro");
}

/** The text without what `run` may only read and this machine has no more: its container does not start without it. */
export function withoutMissing(text: string): string {
  const volumes = volumesIn(text);
  const missing = volumes.filter((one) => isForReading(one) && kindOf(sourceOf(one)) === "missing");
  if (missing.length === 0) return text;
  const document = parseDocument(text);
  for (const one of missing.toReversed()) document.deleteIn([...runVolumes, volumes.indexOf(one)]);
  return document.toString(asWritten);
}

function targetOf(volume: unknown): string {
  const [source = "", target = source] = typeof volume === "string" ? volume.split(":") : [];
  return String(Object(volume).target ?? target).replaceAll("$$", "$");
}

/** Its path on the machine; that of the root directory if it is a volume of Docker's, or depends on variables. */
function sourceOf(volume: unknown): string {
  const [source] = typeof volume === "string" ? volume.split(":") : [];
  const path = String(Object(volume).source ?? source).replaceAll("$$", "\0");
  return path.startsWith("/") && !path.includes("$") ? path.replaceAll("\0", "$") : "/";
}

/** The text of this version, with what was added to the one in `text` for projects: checkouts of `run`, and names of hosts. */
export function renewedComposeFile(text: string): string {
  const renewed = withVolumes(serverComposeFile([]), volumesIn(text));
  const hosts = parseDocument(text).toJS()?.services?.run?.extra_hosts;
  if (hosts === undefined) return renewed;
  const document = parseDocument(renewed);
  document.setIn(runHosts, document.createNode(hosts));
  return document.toString(asWritten);
}

/** The text with this address of a name, which a person may have written as a list. */
export function withHost(text: string, name: string, address: string): string {
  const document = parseDocument(text);
  const present = document.getIn(runHosts);
  const entry = `${name}:${address}`;
  if (!isSeq(present)) document.setIn([...runHosts, name], address);
  else if (!present.items.some((item) => String(item) === entry)) present.add(document.createNode(entry));
  return document.toString(asWritten);
}

/** With these options, a text of ours stays as it is. Of one that a person changed, the spacing may change. */
const asWritten = { lineWidth: 0, flowCollectionPadding: false };

/** The text with those of `items` at the end of the volumes of `run` that are not among them. */
function withVolumes(text: string, items: readonly unknown[]): string {
  const document = parseDocument(text);
  const present = volumesIn(text);
  const missing = items.filter((item) => !present.some((one) => isDeepStrictEqual(one, item)));
  if (missing.length === 0) return text;
  for (const item of missing) document.addIn(runVolumes, document.createNode(item));
  return document.toString(asWritten);
}

function volumesIn(text: string): readonly unknown[] {
  const list = parseDocument(text).getIn(runVolumes);
  return isSeq(list) ? (list.toJSON() as readonly unknown[]) : [];
}
