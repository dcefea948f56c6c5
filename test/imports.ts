/**
 * `node test/imports.ts`, part of `npm run lint`: imports run one way, down the list of parts. Prints each import that does
 * not, and exits with 1 if there is one.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** A part is a folder of `src/`, or a file beside the folders. A part imports those below it; those of one line, each other. */
const parts: readonly (readonly string[])[] = [
  ["main.ts"],
  ["cli"],
  ["init", "send", "doctor"],
  ["page", "receive.ts"],
  [
    "service.ts",
    "become-leader.ts",
    "own-receiver.ts",
    "take-from-inbox.ts",
    "keep-machine-part.ts",
    "dry-run.ts",
    "project-services.ts",
    "project-service.ts",
    "project-parts.ts",
    "control",
    "machine-part",
    "notifications",
  ],
  ["inbox"],
  ["runner"],
  ["deployments", "projects"],
  ["access", "receiver"],
  ["rollout"],
  ["config.ts"],
  ["config", "redaction", "platform", "log.ts"],
  ["site-requests.ts", "commit-names.ts", "problems.ts", "version.ts"],
];

/** Parts that use these modules of Node. */
const restricted: Readonly<Record<string, readonly string[]>> = {
  "node:sqlite": ["platform/sqlite/"],
  "node:child_process": ["platform/run-command.ts", "runner/start-supervisor.ts"],
};

/** @returns what is wrong with the imports of `text`, the file at `path` below src/ */
export function wrongImportsIn(path: string, text: string): readonly string[] {
  const own = layerOf(path);
  return [...text.matchAll(/(?:\bfrom |\bimport\(|\bimport )"([^"]+)"/g)].flatMap(([, target = ""]) => {
    const users = restricted[target];
    if (users !== undefined && !users.some((user) => path.startsWith(user)))
      return [`src/${path}: only ${users.join(" and ")} may import ${target}.`];
    if (!target.startsWith(".")) return [];
    const imported = normalize(join(dirname(path), target));
    return layerOf(imported) < own ? [`src/${path}: imports ${imported}, a part above it.`] : [];
  });
}

/** @throws Error for a part that is not in the list */
function layerOf(path: string): number {
  const [part = ""] = path.split("/");
  const layer = parts.findIndex((line) => line.includes(part));
  if (layer === -1) throw new Error(`Give ${part} a place in the list of parts in test/imports.ts`);
  return layer;
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "../src");
  const wrong = globSync("**/*.ts", { cwd: root }).flatMap((path) =>
    wrongImportsIn(path, readFileSync(join(root, path), "utf8")),
  );
  for (const fault of wrong) console.error(fault);
  process.exitCode = wrong.length > 0 ? 1 : 0;
}
