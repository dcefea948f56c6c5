import { basename, join, relative } from "node:path";
import type { ComposeModel, ComposeVolume } from "#platform/compose";
import { attempt } from "#platform/files";
import { readForeignFile } from "#platform/foreign-files";
import { checkoutAround, lookAt, pathIn } from "#platform/git";
import { type CommandEnding, hasSucceeded } from "#platform/run-command";

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
  const looks = new Map<string, ReturnType<typeof lookAtSources>>();
  const mark = async (volume: ComposeVolume) => {
    const { type, source = "", read_only: isReadOnly } = volume;
    const path = root !== null && type === "bind" && !isReadOnly ? pathIn(root, source) : null;
    if (root === null || path === null) return volume;
    const look = looks.get(path) ?? lookAtSources(root, path, env);
    looks.set(path, look);
    return { ...volume, ...(await look) };
  };
  const services = Object.entries(model.services).map(async ([name, { volumes, ...service }]) => {
    return [name, volumes ? { ...service, volumes: await Promise.all(volumes.map(mark)) } : service] as const;
  });
  return { ...model, services: Object.fromEntries(await Promise.all(services)) };
}

const maxFiles = 2_000;
const linkMode = "120000";
const submoduleMode = "160000";
const sqliteName = /\.(?:db3?|sqlite\d?)$|-(?:wal|shm|journal)$/i;
const sqliteMagic = "SQLite format 3\0";
/** Files that `init` writes into a checkout. */
const ownFile = /^(?:!!|\?\?) (?:\.env|deploy\.sh|compose\.(?:hotpush|override)\.yaml)$/;

/**
 * Marks what is at `path` as read-only if git could read all of it, and all of it is as committed, no database, and not only a
 * `.gitkeep`. If git gives no answer, the mark says so.
 */
async function lookAtSources(
  root: string,
  path: string,
  env: NodeJS.ProcessEnv,
): Promise<Pick<ComposeVolume, "read_only" | "doubt">> {
  const at = ["--", path || "."];
  const listed = await lookAt(root, ["ls-files", "-v", "--stage", "-z", ...at], { env });
  if (!hasSucceeded(listed)) return withDoubt(listed);
  const entries = listed.output.split("\0").slice(0, -1);
  // Any other letter: git was told not to look whether the file is modified.
  const files = entries.flatMap((entry) => {
    const [, mode, name] = /^H (\d+) [^\t]*\t(.*)$/s.exec(entry) ?? [];
    // For a submodule, git would start programs that its own repository names, whoever that belongs to.
    return name === undefined || mode === submoduleMode ? [] : [{ name, isLink: mode === linkMode }];
  });
  if (entries.length > maxFiles || files.length < entries.length) return {};
  const isVisible = (name: string) => !/(?:^|\/)\./.test(relative(path, name) || basename(name));
  if (!files.some(({ name }) => isVisible(name))) return {};
  const other = new AbortController();
  // A warning is a line too, of a directory that git cannot read.
  const onLine = (line: string) => {
    if (!ownFile.test(line)) other.abort();
  };
  const flags = ["--porcelain", "--untracked-files=normal", "--ignored=matching", "--ignore-submodules=all"];
  const status = await lookAt(root, ["status", ...flags, ...at], { env, onLine, signal: other.signal });
  if (other.signal.aborted) return {};
  if (!hasSucceeded(status)) return withDoubt(status);
  const isNoDatabase = ({ name, isLink }: (typeof files)[number]) => {
    if (isLink || sqliteName.test(name)) return !sqliteName.test(name);
    const options = { mostBytes: sqliteMagic.length, isCut: true, followsLinks: false };
    const read = () => readForeignFile(join(root, name), options).toString("latin1");
    return attempt(read, sqliteMagic) !== sqliteMagic;
  };
  return files.every(isNoDatabase) ? { read_only: true } : {};
}

/** Too much output, or an exit code, is an answer: git does not know the directory. */
function withDoubt({ kind }: CommandEnding): Pick<ComposeVolume, "doubt"> {
  if (kind === "timed_out") return { doubt: "(git took too long to say whether it is tracked sources)" };
  return kind === "not_found" ? { doubt: "(without git, nobody knows whether it is tracked sources)" } : {};
}
