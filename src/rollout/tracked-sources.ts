import { basename, join, relative } from "node:path";
import type { ComposeModel, ComposeVolume } from "#platform/compose";
import { attempt } from "#platform/files";
import { readForeignFile } from "#platform/foreign-files";
import { checkoutAround, lookAt, pathIn } from "#platform/git";
import { hasSucceeded } from "#platform/run-command";

/**
 * Marks writable mounts of tracked sources as read-only, because they are code: two containers may have them. In doubt a mount holds
 * data, because two databases on one directory destroy it.
 *
 * @param directory the directory of the compose file
 */
export async function withSourcesReadOnly(
  model: ComposeModel,
  directory: string,
  env: NodeJS.ProcessEnv,
): Promise<ComposeModel> {
  const root = checkoutAround(directory);
  const mark = async (volume: ComposeVolume) => {
    const { type, source = "", read_only: isReadOnly } = volume;
    const path = root !== null && type === "bind" && !isReadOnly ? pathIn(root, source) : null;
    const isCode = root !== null && path !== null && (await holdsSourcesOnly(root, path, env));
    return isCode ? { ...volume, read_only: true } : volume;
  };
  const services = Object.entries(model.services).map(async ([name, { volumes, ...service }]) => {
    return [name, volumes ? { ...service, volumes: await Promise.all(volumes.map(mark)) } : service] as const;
  });
  return { ...model, services: Object.fromEntries(await Promise.all(services)) };
}

const maxFiles = 2_000;
const sqliteName = /\.(?:db3?|sqlite\d?)$|-(?:wal|shm|journal)$/i;
const sqliteMagic = "SQLite format 3\0";
/** Files that `init` writes into a checkout. */
const ownFile = /^(?:!!|\?\?) (?:\.env|deploy\.sh|compose\.(?:hotpush|override)\.yaml)$/;

/** Reports whether git could read all that is at `path`, and all of it is as committed, no database, and not only a `.gitkeep`. */
async function holdsSourcesOnly(root: string, path: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const other = new AbortController();
  // A warning is a line too, of a directory that git cannot read.
  const onLine = (line: string) => {
    if (!ownFile.test(line)) other.abort();
  };
  const flags = ["--porcelain", "--untracked-files=normal", "--ignored=matching", "--ignore-submodules=none"];
  const at = ["--", path || "."];
  const [status, listed] = await Promise.all([
    lookAt(root, ["status", ...flags, ...at], { env, onLine, signal: other.signal }),
    lookAt(root, ["ls-files", "-v", "-z", ...at], { env }),
  ]);
  if (other.signal.aborted || !hasSucceeded(status) || !hasSucceeded(listed)) return false;
  const entries = listed.output.split("\0").slice(0, -1);
  // Any other letter: git was told not to look whether the file is modified.
  if (entries.length > maxFiles || !entries.every((entry) => entry.startsWith("H "))) return false;
  const names = entries.map((entry) => entry.slice(2));
  const isVisible = (name: string) => !/(?:^|\/)\./.test(relative(path, name) || basename(name));
  const isNoDatabase = (name: string) => {
    const options = { mostBytes: sqliteMagic.length, isCut: true, followsLinks: false };
    const head = attempt(() => readForeignFile(join(root, name), options).toString("latin1"), sqliteMagic);
    return head !== sqliteMagic && !sqliteName.test(name);
  };
  return names.some(isVisible) && names.every(isNoDatabase);
}
