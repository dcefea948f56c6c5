import { resolve } from "node:path";
import { machineCaddyfile } from "../../machine-part/caddyfile.ts";
import {
  machineComposeFile,
  usualCheckoutPaths,
  withCaddyPort,
  withCheckoutPath,
} from "../../machine-part/compose-file.ts";
import { kindOf } from "../../platform/files.ts";
import { type Setting, withSettings } from "../dotenv-file.ts";
import type { Machine } from "../machine.ts";
import { ownImage } from "../own-image.ts";
import type { Owner, WantedFile } from "../planned-file.ts";
import type { SetupProject } from "../project.ts";
import type { MachinePlace } from "./machine-place.ts";

export interface MachineFilesOptions {
  readonly place: MachinePlace;
  readonly machine: Machine;
  readonly project: SetupProject;
  /** Ports of the machine that Caddy takes over from this project, beside 80 and 443. */
  readonly ports: readonly { readonly port: number; readonly address: string }[];
  /** Of the page. */
  readonly settings: readonly Setting[];
}

/** A directory as it should be made if it is missing. */
export interface PlannedDirectory {
  readonly path: string;
  readonly mode: number;
  readonly owner: Owner;
}

/** The directories of the machine part, those that contain others first. */
export function machineDirectories({ place, machine }: MachineFilesOptions): readonly PlannedDirectory[] {
  const { files, state } = place;
  const [own, receive] = [self(), receiveOwner(place)];
  return [
    { path: files.path, mode: 0o755, owner: own },
    { path: files.sitesPath, mode: 0o755, owner: own },
    { path: files.projectsPath, mode: 0o750, owner: { ...own, gid: receive.gid } },
    { path: files.secretsPath, mode: 0o700, owner: own },
    { path: state.path, mode: 0o755, owner: own },
    { path: state.run, mode: 0o700, owner: own },
    { path: state.receive, mode: 0o700, owner: receive },
    pageDirectory(place),
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
export function machineWideFiles(options: MachineFilesOptions): readonly WantedFile[] {
  const owner = self();
  return [
    {
      ...{ name: "compose.yaml", mode: 0o644, owner, purpose: "Caddy, and Hotpush in containers" },
      make: (before) => withNeeds(before ?? machineComposeFile(presentPaths()), options),
    },
    {
      ...{ name: "Caddyfile", mode: 0o644, owner, purpose: "what the sites of all projects import" },
      make: (before) => before ?? machineCaddyfile(),
    },
    {
      ...{ name: ".env", mode: 0o644, owner, purpose: "the values of this machine" },
      make: (before) => withSettings(before ?? "", machineSettings(options)),
    },
  ];
}

/** The user of `receive`, as it is or will be in .env. */
export function receiveOwner({ env }: MachinePlace): Owner {
  const [uid, gid] = (env.RECEIVE_USER ?? newReceiveUser()).split(":").map(Number);
  return { uid: uid ?? 0, gid: gid ?? uid ?? 0 };
}

/** The directory of the socket on which `page` calls `run`: its group may use the socket, and only root may change it. */
export function pageDirectory({ env, state }: Pick<MachinePlace, "env" | "state">): PlannedDirectory {
  const [uid = 0, gid = uid] = (env.PAGE_USER ?? newPageUser()).split(":").map(Number);
  return { path: state.page, mode: 0o750, owner: { ...self(), gid } };
}

/** The user of this process, as an owner. */
export function self(): Owner {
  return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
}

function machineSettings({ place, machine, settings }: MachineFilesOptions): readonly Setting[] {
  const { files, state, ports } = place;
  const values = {
    HOTPUSH_IMAGE: ownImage,
    MACHINE_PATH: files.path,
    STATE_PATH: state.path,
    RECEIVE_USER: newReceiveUser(),
    PAGE_USER: newPageUser(),
    DOCKER_SOCKET: machine.dockerSocket,
    HTTP_PORT: String(ports.http),
    HTTPS_PORT: String(ports.https),
  };
  return [...Object.entries(values).map(([name, value]) => ({ name, value, isOpen: true })), ...settings];
}

/** As another user than root one cannot give files away, so `receive` and `page` run as that user. */
function newReceiveUser(): string {
  const { uid, gid } = self();
  return uid === 0 ? "9000:9000" : `${uid}:${gid}`;
}

function newPageUser(): string {
  const { uid, gid } = self();
  return uid === 0 ? "9001:9001" : `${uid}:${gid}`;
}

function presentPaths(): readonly string[] {
  return usualCheckoutPaths.filter((path) => kindOf(path) === "directory");
}

function withNeeds(text: string, { project, ports }: MachineFilesOptions): string {
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
