import { constants, existsSync, mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { variables } from "../../config/settings.ts";
import { isInContainer } from "../../platform/docker/mountinfo.ts";
import { isAllowed, kindOf, nearestExisting, ownUid, statOf } from "../../platform/files.ts";
import { type CheckFinding, type Fix, ok, problem, quote, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { findInCompose } from "../service/own-service.ts";

/** From the host, the state of a service in a container cannot be checked. */
const inContainer = skip("it is in the container: docker compose exec hotpush hotpush doctor");

/** The service writes an accepted push to disk here before it answers the git host. */
export async function checkStateDirectory(context: DoctorContext): Promise<CheckFinding> {
  return (await findInCompose(context)) === null ? checkDirectory(context) : inContainer;
}

/** SQLite needs locks that hold, and a promise to a git host needs a disk. */
export async function checkStateFileSystem(context: DoctorContext): Promise<CheckFinding> {
  return (await findInCompose(context)) === null ? checkFileSystem(context) : inContainer;
}

function checkDirectory({ statePath }: DoctorContext): CheckFinding {
  const user = `uid ${ownUid()}`;
  const kind = kindOf(statePath);
  if (kind === "missing") {
    if (isAllowed(nearestParent(statePath), constants.W_OK)) return ok(`${statePath} will be created`);
    const text = `${statePath} does not exist, and this user (${user}) cannot create it. As root:`;
    return problem(text, createCommand(statePath));
  }
  if (kind !== "directory") {
    const text = `${statePath} is not a directory that this user (${user}) can enter. As root:`;
    const aside = `mv ${quote(statePath)} ${quote(`${statePath}.aside`)} && ${createCommand(statePath)}`;
    return problem(text, kind === "inaccessible" ? chownCommand(statePath) : aside);
  }
  const code = tryToWrite(statePath);
  if (code !== null) {
    const text = `This user (${user}) cannot write to ${statePath} (${code}). ${code === "EROFS" ? "The disk is mounted read-only." : "As root:"}`;
    return problem(text, writableCommand(statePath, code));
  }
  if (((statOf(statePath)?.mode ?? 0) & 0o077) === 0) return ok(`${statePath} is writable`);
  const text = `Other users can read ${statePath}, which has the output of deployments.`;
  return warning(text, `chmod 700 ${quote(statePath)}`);
}

function nearestParent(path: string): string {
  const parent = dirname(path);
  return kindOf(parent) === "missing" && parent !== path ? nearestParent(parent) : parent;
}

/** @returns null if a file could be written and synced, else the error's code */
function tryToWrite(directory: string): string | null {
  const path = join(directory, `.doctor-${process.pid}`);
  try {
    mkdirSync(directory, { recursive: true });
    writeFileSync(path, "hotpush doctor\n", { mode: 0o600, flush: true });
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unknown error";
  } finally {
    if (existsSync(path)) rmSync(path);
  }
}

function createCommand(path: string): string {
  return `install -d -o ${ownUid()} -g ${process.getgid?.()} -m 700 ${quote(path)}`;
}

function chownCommand(path: string): string {
  return `chown -R ${ownUid()}:${process.getgid?.()} ${quote(path)} && chmod 700 ${quote(path)}`;
}

function writableCommand(path: string, code: string): string {
  if (code !== "EROFS") return chownCommand(path);
  return `mount -o remount,rw "$(findmnt --noheadings --output TARGET --target ${quote(path)})"`;
}

const withoutLocks = "locks do not hold there, so two deployments could run at once";
const inMemory = "a reboot loses every accepted push";

/** File systems that cannot hold the state, by their numbers in statfs(2): the name, and why. */
const unfit: ReadonlyMap<number, string> = new Map([
  [0x6969, `NFS: ${withoutLocks}`],
  [0xff534d42, `CIFS: ${withoutLocks}`],
  [0xfe534d42, `SMB: ${withoutLocks}`],
  [0x01021994, `a tmpfs: ${inMemory}`],
  [0x858458f6, `a ramfs: ${inMemory}`],
]);
const overlay = 0x794c7630;

function checkFileSystem({ statePath, settings }: DoctorContext): CheckFinding {
  const type = typeAt(statePath);
  if (type === overlay && isInContainer()) {
    const text = `${statePath} is in the container's own layers, which are removed when it is replaced. In the compose file, give Hotpush a volume:`;
    return problem(text, { change: `volumes: - hotpush:${statePath}` });
  }
  const found = unfit.get(type);
  if (!found) return ok("a local disk");
  const places = [variables.STATE_PATH.fallback(settings.env), "/var/lib/hotpush"];
  const better = places.find((path) => !unfit.has(typeAt(path)));
  const text = `${statePath} is on ${found}. Put it on a disk of this machine.`;
  return problem(text, better && moveTo(better, settings));
}

function moveTo(path: string, settings: DoctorContext["settings"]): Fix {
  const fix = settings.set("STATE_PATH", quote(path));
  return typeof fix === "string" ? `mkdir -p ${quote(path)} && ${fix}` : fix;
}

/** The type of the file system that holds `path`, or will hold it. */
function typeAt(path: string): number {
  return statfsSync(nearestExisting(path)).type;
}
