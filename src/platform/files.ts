import { randomBytes } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { formatSize } from "#config/values";

/** What `work` gives, or `otherwise` if it throws: for what others may have spoilt, if it does not matter how. */
export function attempt<Result, Otherwise>(work: () => Result, otherwise: Otherwise): Result | Otherwise {
  try {
    return work();
  } catch {
    return otherwise;
  }
}

/** What is at `path`, links followed. */
export function kindOf(path: string) {
  try {
    const stats = statSync(path);
    return stats.isFile() ? "file" : stats.isDirectory() ? "directory" : "other";
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    return ["EACCES", "EPERM"].includes(code) ? "inaccessible" : "missing";
  }
}

/** The status of what is at `path`, links followed; null if nothing is there, or this user may not see it. */
export function statOf(path: string): Stats | null {
  return attempt(() => statSync(path), null);
}

/** `path` if it exists, else the nearest directory above it that does: what holds `path`, or will hold it. */
export function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));
}

/** So many files a file system must have room for. Those without a limit count none. */
const neededFiles = 1_000;

/** A sentence on what is missing at `path` for `neededBytes` of new files; null if there is room. */
export function spaceShortage(path: string, neededBytes: number): string | null {
  const { bavail, bsize, files, ffree } = statfsSync(path);
  if (bavail * bsize < neededBytes)
    return `Only ${formatSize(bavail * bsize)} are free at ${path}, and ${formatSize(neededBytes)} are needed.`;
  if (files === 0 || ffree >= neededFiles) return null;
  return `The file system at ${path} has room for only ${ffree} more files (inodes), however large they are.`;
}

/** Whether this user may do what `mode` says (of fs.constants: R_OK, X_OK). */
export function isAllowed(path: string, mode: number): boolean {
  return attempt(() => accessSync(path, mode), false) !== false;
}

/** The id of the user that the service runs as. */
export function ownUid(): number {
  return process.getuid?.() ?? 0;
}

/**
 * The file that the name `program` stands for, as execvp(3) looks it up: the first in the directories of `searchPath` that
 * this user may run. An empty directory is the working directory.
 *
 * @param searchPath a PATH
 * @returns its path, links not followed, or null
 */
export function findProgram(program: string, searchPath: string): string | null {
  const places = searchPath.split(delimiter).map((directory) => join(directory || ".", program));
  return places.find((path) => kindOf(path) === "file" && isAllowed(path, constants.X_OK)) ?? null;
}

/** Opens the file at `path`; a new one is for this user alone. It is closed with the block of the variable that holds it. */
export function openFile(path: string, flags: number | "a" | "r" | "wx") {
  const fd = openSync(path, flags, 0o600);
  return { fd, [Symbol.dispose]: () => closeSync(fd) };
}

/** Makes a directory that only this user can enter. It is removed with the block of the variable that holds it. */
export function makeScratch(prefix = join(tmpdir(), "hotpush-")) {
  const path = mkdtempSync(prefix);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Who may do what with a file. */
export interface Access {
  readonly mode: number;
  /** Null: the user of this process. Only root can name another one. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
}

/** The owner of a new file in `directory`: if root makes it, that of the directory; null for this user. */
export function inheritedOwner(directory: string): Access["owner"] {
  const stats = ownUid() === 0 ? statOf(directory) : null;
  return stats === null || stats.uid === 0 ? null : { uid: stats.uid, gid: stats.gid };
}

/**
 * Replaces the file at `path` as a whole, or creates it: every reader, also after a power cut, sees the old text or the new
 * one. The new one is on disk when this returns, if the directory can be synced. A link itself is replaced, not its target.
 *
 * @throws the system's error; then the file is unchanged
 */
export function replaceFile(path: string, text: string, { mode, owner }: Access): void {
  const unfinished = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}`);
  try {
    using file = openFile(unfinished, "wx");
    writeFileSync(file.fd, text);
    if (owner) fchownSync(file.fd, owner.uid, owner.gid);
    fchmodSync(file.fd, mode);
    fsyncSync(file.fd);
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  // Without it, the name may lead to the old file again after a power cut.
  try {
    using directory = openFile(dirname(path), "r");
    fsyncSync(directory.fd);
  } catch (error) {
    // A write-only directory, or a file system that cannot sync directories: the file is replaced anyway.
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["EACCES", "EPERM", "EINVAL", "ENOTSUP"].includes(code)) throw error;
  }
}

/**
 * Replaces the file at `path` as `replaceFile` does, and keeps its mode and owner; a link stays a link. A new file gets those
 * of the file `like`, else only its owner can read it.
 */
export function rewriteFile(path: string, text: string, like: string = path): void {
  const before = statSync(path, { throwIfNoEntry: false });
  const model = before ?? statSync(like, { throwIfNoEntry: false });
  const mode = model ? model.mode & 0o777 : 0o600;
  const owner = model && ownUid() === 0 ? { uid: model.uid, gid: model.gid } : null;
  replaceFile(before ? realpathSync(path) : path, text, { mode, owner });
}

/** A user of this machine, and what a program needs to run as that user. */
export interface SystemUser {
  readonly uid: number;
  /** The primary group. */
  readonly gid: number;
  /** All groups. */
  readonly groups: readonly number[];
  /** null: /etc/passwd does not have this user. */
  readonly name: string | null;
  readonly home: string;
}

/**
 * The user with this id, by /etc/passwd and /etc/group as they are now.
 *
 * @param gid the primary group, if /etc/passwd does not have the user
 */
export function readUser(uid: number, gid: number): SystemUser {
  const entry = fieldsOf("/etc/passwd").find((fields) => fields[2] === String(uid));
  if (entry === undefined) return { uid, gid, groups: [gid], name: null, home: "/" };
  const [name = "", , , primary, , home] = entry;
  const groups = fieldsOf("/etc/group")
    .filter((fields) => fields[3]?.split(",").includes(name))
    .map((fields) => Number(fields[2]));
  return withGroup({ uid, gid: Number(primary), groups, name, home: home || "/" }, Number(primary));
}

function fieldsOf(path: string): readonly (readonly string[])[] {
  // Without it, the user has no name, which is reported.
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  return text.split("\n").map((line) => line.split(":"));
}

/** The same user, also as a member of the group `gid`. */
export function withGroup(user: SystemUser, gid: number): SystemUser {
  return { ...user, groups: [...new Set([gid, ...user.groups])] };
}
