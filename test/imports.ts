/**
 * `node test/imports.ts`, part of `npm run lint`: imports run one way, down the list of parts, and a part uses of another
 * only what that one offers. Prints each import that does not, and exits with 1 if there is one.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** A part is a folder of `src/`, or a file beside the folders. A part imports those below it; those of one line, each other. */
const parts: readonly (readonly string[])[] = [
  ["main.ts"],
  ["cli"],
  ["setup", "send", "doctor", "front", "run.ts"],
  ["projects", "calls", "notifications"],
  ["runner"],
  ["deployments"],
  ["access"],
  ["rollout"],
  ["config", "redaction.ts", "platform", "log.ts"],
  ["site-requests.ts", "problems.ts", "version.ts"],
];

/** The files of each folder that other parts may import. All of `platform` is for them. */
const offered: Readonly<Record<string, string>> = {
  access: "visitors",
  calls: "client context openapi shapes sockets table",
  cli: "command-line",
  config: "git-hosts project project-files secret server service settings values",
  deployments:
    "catch-up checks deployment history outbox push queue receipt record resolve store watch-images",
  doctor: "examine in-run report",
  front: "front",
  notifications: "commit-status host-checks notifications targets",
  projects: "project take-pushes",
  rollout: "images locate-project project prune report requests rollout state",
  runner: "log-file new-images runner script signatures",
  send: "send verdict",
  setup:
    "clone connect host-apis init planned-file project reconcile remove secret served server sites start up upgrade webhook-form",
};

/** Parts that use these modules of Node. */
const restricted: Readonly<Record<string, readonly string[]>> = {
  "node:sqlite": ["platform/sqlite.ts"],
  "node:child_process": ["platform/run-command.ts", "runner/supervisor.ts"],
};

/**
 * What `run` does as root. Of its files these open some by their paths, in directories that only the service's user can
 * write to; all that others can write to is opened by platform/foreign-files.ts.
 */
const runsAsRoot = [
  "access/",
  "calls/",
  "deployments/",
  "notifications/",
  "projects/",
  "runner/",
  "rollout/report.ts",
  "rollout/state.ts",
  "setup/reconcile.ts",
];
const openOwnFiles = [
  "calls/handlers.ts", // logs of scripts
  "setup/reconcile.ts", // /etc/hotpush, and what is in live/ itself
  "projects/project.ts", // names of state directories
  "rollout/state.ts", // of it run only reads good versions, by foreign-files.ts; the roll-out itself runs as its user
  "runner/log-file.ts",
  "runner/runner.ts", // old logs
  "runner/script.ts", // makes directories in one of root and in the temporary one, and does not follow what is there
  "runner/supervisor.ts", // runs, and /proc
  "runner/signatures.ts", // a directory that it makes
  "version.ts",
];
/** The functions of node:fs that open, change or list what is at a path. */
const opener =
  /\b(?:(?:read|write|append|truncate|copy)File|open|opendir|readdir|readlink|mkdir|mkdtemp|rm|rmdir|unlink|rename|cp|link|symlink|chmod|chown|truncate|watch|watchFile)(?:Sync)?\b|\bcreate(?:Read|Write)Stream\b/;

function opensFilesByPath(text: string): boolean {
  const imports = text.matchAll(/import (?:type )?([^;]*?) from "node:fs(?:\/promises)?"/g);
  return [...imports].some(([, names = ""]) => !names.startsWith("{") || opener.test(names));
}

/** @returns what is wrong with the imports of `text`, the file at `path` below src/ */
export function wrongImportsIn(path: string, text: string): readonly string[] {
  const own = layerOf(path);
  const isRun = !path.includes("/") || runsAsRoot.some((known) => path.startsWith(known));
  const isOpener = isRun && !openOwnFiles.includes(path);
  const opened = isOpener && opensFilesByPath(text) ? [`src/${path}: ${advice}`] : [];
  const wrong = [...text.matchAll(/(?:\bfrom|\bimport\(|\bimport)\s*["`]([^"`]+)["`]/g)].flatMap(
    ([, target = ""]) => {
      const users = restricted[target];
      if (users !== undefined && !users.some((user) => path.startsWith(user)))
        return [`src/${path}: only ${users.join(" and ")} may import ${target}.`];
      const imported = pathOf(target, path);
      if (imported === undefined) return [];
      if (target.startsWith(".") && partOf(imported) !== partOf(path) && path.includes("/"))
        return [`src/${path}: import ${imported} as #${imported.replace(/\.ts$/, "")}.`];
      if (partOf(imported) !== partOf(path) && !isOffered(imported))
        return [
          `src/${path}: ${imported} is its part's own; \`offered\` in test/imports.ts has what is not.`,
        ];
      return layerOf(imported) < own ? [`src/${path}: imports ${imported}, a part above it.`] : [];
    },
  );
  return [...opened, ...wrong];
}

const advice =
  "open files of others by platform/foreign-files.ts; if only the service can write there, name this file in test/imports.ts.";

/** @returns the file below src/ that `target` means in the file at `path`, or undefined if it is in none of ours */
function pathOf(target: string, path: string): string | undefined {
  if (target.startsWith(".")) return normalize(join(dirname(path), target));
  return target.startsWith("#") ? `${target.slice(1)}.ts` : undefined;
}

function isOffered(path: string): boolean {
  const part = partOf(path);
  if (part === path || part === "platform") return true;
  return (offered[part] ?? "").split(" ").some((file) => path === `${part}/${file}.ts`);
}

const partOf = (path: string): string => path.split("/")[0] ?? "";

/** @throws Error for a part that is not in the list */
function layerOf(path: string): number {
  const part = partOf(path);
  const layer = parts.findIndex((line) => line.includes(part));
  if (layer === -1) throw new Error(`Give ${part} a place in the list of parts in test/imports.ts`);
  return layer;
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "../src");
  const wrong = globSync("**/*.ts", { cwd: root }).flatMap((path) =>
    wrongImportsIn(path, readFileSync(join(root, path), "utf8")),
  );
  // A list that names a file that was moved guards nothing.
  const offers = Object.entries(offered).flatMap(([part, files]) =>
    files.split(" ").map((file) => `${part}/${file}.ts`),
  );
  const gone = [...runsAsRoot, ...openOwnFiles, ...offers].filter((path) => !existsSync(join(root, path)));
  const faults = [...wrong, ...gone.map((path) => `test/imports.ts names src/${path}, which is not there.`)];
  for (const fault of faults) console.error(fault);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
