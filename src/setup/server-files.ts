import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Document, isSeq, parseDocument } from "yaml";
import { kindOf, statOf } from "#platform/files";
import type { ServerPlace } from "./machine.ts";
import { type PlannedDirectory, type Setting, self, type WantedFile, withSettings } from "./planned-file.ts";
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
  const remote = remotePath(project);
  const compose: Make = (before) => {
    const text = withCheckoutPath(before ?? serverComposeFile(usual), project.root, false);
    return remote === null ? text : withCheckoutPath(text, remote, true);
  };
  const all = [...serverSettings(place), ...settings];
  return wideFiles(compose, (before) => before ?? serverCaddyfile(), all);
}

/** The same files as this version of Hotpush has them, with what was added for projects. */
export function renewedFiles(image: string): readonly WantedFile[] {
  const setting = { name: "HOTPUSH_IMAGE", value: image, isOpen: false };
  return wideFiles((before) => renewedComposeFile(before ?? ""), serverCaddyfile, [setting]);
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

/** The remote if it is a directory of this machine, which scripts must see to fetch from it; else null. */
function remotePath({ remote, remoteUrl, root }: SetupProject): string | null {
  if (remote !== null || remoteUrl === null) return null;
  const path = resolve(root, remoteUrl.replace(/^file:\/\//, ""));
  return kindOf(path) === "directory" ? path : null;
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

/** Where it lists what `run` has of the machine. */
const runVolumes = ["services", "run", "volumes"] as const;

/** The text with the directory at `path` among those that `run` has at their own paths, if none of them has it in it. */
export function withCheckoutPath(text: string, path: string, isReadOnly: boolean): string {
  const isThere = volumesIn(parseDocument(text)).some((one) => `${path}/`.startsWith(`${targetOf(one)}/`));
  if (isThere) return text;
  const escaped = path.replaceAll("$", "$$$$");
  const volume = { type: "bind", source: escaped, target: escaped, ...(isReadOnly && { read_only: true }) };
  return withVolumes(text, [volume]);
}

function targetOf(volume: unknown): string {
  const [source = "", target = source] = typeof volume === "string" ? volume.split(":") : [];
  return String(Object(volume).target ?? target).replaceAll("$$", "$");
}

/** The text of this version, with what was added to the one in `text` for projects: checkouts of `run`. */
export function renewedComposeFile(text: string): string {
  return withVolumes(serverComposeFile([]), volumesIn(parseDocument(text)));
}

/** With these options, a text of ours stays as it is. Of one that a person changed, the spacing may change. */
const asWritten = { lineWidth: 0, flowCollectionPadding: false };

/** The text with those of `items` at the end of the volumes of `run` that are not among them. */
function withVolumes(text: string, items: readonly unknown[]): string {
  const document = parseDocument(text);
  const present = volumesIn(document);
  const missing = items.filter((item) => !present.some((one) => isDeepStrictEqual(one, item)));
  if (missing.length === 0) return text;
  for (const item of missing) document.addIn(runVolumes, document.createNode(item));
  return document.toString(asWritten);
}

function volumesIn(document: Document.Parsed): readonly unknown[] {
  const list = document.getIn(runVolumes);
  return isSeq(list) ? (list.toJSON() as readonly unknown[]) : [];
}
