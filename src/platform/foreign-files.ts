import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  opendirSync,
  readlinkSync,
  readSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import { basename, dirname, isAbsolute, resolve } from "node:path";
import { type Access, attempt, openFile, ownUid, readUser, replaceFile } from "./files.ts";

/** Opens nothing, so that a pipe or a device does not notice (open(2)). Node has no name for it. */
export const O_PATH = 0o10000000;
const { O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
/** How many names a path may lead through, with those of its links: each is opened while the process waits. */
const mostPathNames = 256;
/** Nobody has so many files side by side by hand, and listing more would hold up the process. */
export const mostNames = 10_000;

interface ReadOptions {
  readonly mostBytes: number;
  /** Gives the first `mostBytes` of a larger file instead of refusing it. */
  readonly isCut?: boolean;
  /** Whether the file may be a link to another one. Default: yes. */
  readonly followsLinks?: boolean;
  /** The user who chose the path, if that is another one: then only what that user can reach is read. */
  readonly namedBy?: number | undefined;
}

/**
 * Reads a file in a directory that another user can write to, who may have put anything there, and may change it at any
 * moment: the file that is opened is the one that was checked. It never waits, and reads only plain files. Root follows a
 * link of another user only to what that user can reach.
 *
 * @throws the system's error, or one with the code EISDIR, EINVAL (no plain file), ENOTDIR, EFBIG (too large), ELOOP (a link, or too
 * many names) or EPERM (not for the owner of the link)
 */
export function readForeignFile(
  path: string,
  { mostBytes, isCut = false, followsLinks = true, namedBy }: ReadOptions,
): Buffer {
  using found = find(path, {
    namers: namedBy === undefined ? [] : [namedBy],
    followsForeign: true,
    followsLast: followsLinks,
  });
  if (found.stats.isDirectory()) throw refusal("EISDIR", path, "is a directory");
  if (!found.stats.isFile()) throw refusal("EINVAL", path, "is no plain file");
  if (found.stats.size > mostBytes && !isCut) throw refusal("EFBIG", path, `is over ${mostBytes} bytes`);
  using file = openFile(at(found), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  const bytes = Buffer.alloc(Math.min(mostBytes, found.stats.size));
  return bytes.subarray(0, readSync(file.fd, bytes, 0, bytes.length, 0));
}

/** The names in such a directory, sorted; the first ones that the system gives if there are very many. @throws as above */
export function listForeignDirectory(path: string, most: number = mostNames): readonly string[] {
  return withForeignDirectory(path, (shortPath) => {
    const directory = opendirSync(shortPath);
    try {
      const names: string[] = [];
      for (let entry = directory.readSync(); entry && names.length < most; entry = directory.readSync())
        names.push(entry.name);
      return names.sort();
    } finally {
      directory.closeSync();
    }
  });
}

/** Replaces a file in such a directory, as `replaceFile` does. No link of another user is followed. @throws as above */
export function replaceForeignFile(path: string, text: string, access: Access): void {
  withForeignDirectory(dirname(path), (shortPath) =>
    replaceFile(`${shortPath}/${basename(path)}`, text, access),
  );
}

/** Removes a file, or a link, from such a directory, if it is there. No link of another user is followed. @throws as above */
export function removeForeignFile(path: string): void {
  withForeignDirectory(dirname(path), (shortPath) =>
    rmSync(`${shortPath}/${basename(path)}`, { force: true }),
  );
}

/** The status of what is in such a directory, or null. No link of another user is followed. @throws as above */
export function statForeignFile(path: string): Stats | null {
  try {
    using found = find(path, { followsForeign: false });
    return found.stats;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Makes a directory, with those above it, or corrects its mode and owner. No link of another user is followed. @throws as above */
export function makeForeignDirectory(path: string, { mode, owner }: Access): void {
  const above = dirname(path);
  if (statForeignFile(above) === null) makeForeignDirectory(above, { mode: 0o755, owner: null });
  if (statForeignFile(path) === null)
    withForeignDirectory(above, (shortPath) => mkdirSync(`${shortPath}/${basename(path)}`));
  withForeignDirectory(path, (shortPath) => {
    const present = statSync(shortPath);
    if (owner !== null && (present.uid !== owner.uid || present.gid !== owner.gid))
      chownSync(shortPath, owner.uid, owner.gid);
    if ((present.mode & 0o7777) !== mode) chmodSync(shortPath, mode);
  });
}

/**
 * For root: who else decides what is at `path`: its owner, else the owner of the innermost directory or link on the way to it, who
 * could put something else there at any moment. `path` need not exist. Null: nobody, or this process is not root's.
 */
export function controllerOf(path: string): Stats | null {
  if (ownUid() !== 0) return null;
  let controller: Stats | null = null;
  const note = (stats: Stats) => {
    if (stats.uid !== 0) controller = stats;
  };
  // If it throws, who has been met so far decides what can come there.
  attempt(() => find(path, { followsForeign: true, onVisit: note })[Symbol.dispose](), null);
  return controller;
}

/** Does `work` with a path of the directory that leads to the same one, whatever is renamed meanwhile. */
function withForeignDirectory<Result>(path: string, work: (shortPath: string) => Result): Result {
  using found = find(path, { followsForeign: false });
  if (!found.stats.isDirectory()) throw refusal("ENOTDIR", path, "is no directory");
  return work(at(found));
}

type Found = ReturnType<typeof openPath>;

function at({ fd }: Found): string {
  return `/proc/self/fd/${fd}`;
}

interface FindOptions {
  /** Users who chose the path: only what they all can reach is found. */
  readonly namers?: readonly number[];
  /** Whether root follows links of other users, to what those can reach. */
  readonly followsForeign: boolean;
  /** Whether `path` itself may be a link. Default: yes. */
  readonly followsLast?: boolean;
  /** Gets each file, directory and link on the way. */
  readonly onVisit?: (stats: Stats) => void;
}

/** Finds what is at `path`, one name after the other, so that nothing on the way can be exchanged unseen. */
function find(
  path: string,
  { namers = [], followsForeign, followsLast = true, onVisit = () => {} }: FindOptions,
): Found {
  const isRoot = ownUid() === 0;
  const groupsOf = new Map<number, readonly number[]>();
  const addOwner = (uid: number) =>
    uid === 0 || groupsOf.has(uid) || groupsOf.set(uid, readUser(uid, -1).groups);
  if (isRoot) namers.forEach(addOwner);
  let names = namesIn(resolve(path));
  let visited = 0;
  let here = openPath("/");
  try {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      visited += 1;
      if (visited > mostPathNames) throw refusal("ELOOP", path, "leads through too many names");
      const next = openPath(`${at(here)}/${name}`);
      onVisit(next.stats);
      if (!next.stats.isSymbolicLink()) {
        closeSync(here.fd);
        here = next;
        if (isRoot && !isReachable(here.stats, groupsOf)) throw refusal("EPERM", path, "is of another user");
        continue;
      }
      closeSync(next.fd);
      if (!followsLast && names.length === 0) throw refusal("ELOOP", path, "is a link");
      // Who may have chosen where the link leads, if it is not root: its owner, else that of its directory.
      const owner = isRoot ? next.stats.uid || here.stats.uid : 0;
      if (owner !== 0 && !followsForeign) throw refusal("EPERM", path, "leads through a link");
      addOwner(owner);
      const target = readlinkSync(`${at(here)}/${name}`);
      names = [...namesIn(target), ...names].slice(0, mostPathNames);
      if (isAbsolute(target)) {
        closeSync(here.fd);
        here = openPath("/");
      }
    }
    return here;
  } catch (error) {
    closeSync(here.fd);
    throw error;
  }
}

function namesIn(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

function openPath(path: string) {
  const file = openFile(path, O_PATH | O_NOFOLLOW);
  return { ...file, stats: fstatSync(file.fd) };
}

/** Whether all these users, by their groups, could go on here: through a directory, or read a file. */
function isReachable(stats: Stats, groupsOf: ReadonlyMap<number, readonly number[]>): boolean {
  const forAll = stats.isDirectory() ? 0o001 : 0o004;
  return [...groupsOf].every(([user, groups]) => {
    return stats.uid === user || (stats.mode & (groups.includes(stats.gid) ? forAll << 3 : forAll)) !== 0;
  });
}

function refusal(code: string, path: string, why: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${path} ${why}`), { code, path, syscall: "open" });
}
