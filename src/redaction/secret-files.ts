import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";

/** A variable in a file. */
export interface FileVariable {
  readonly path: string;
  readonly name: string;
  readonly value: string;
}

/**
 * The variables in the environment files of a project, by their usual names: `.env`, `.env.production`, `app.env`.
 * Templates such as `.env.example` are left out.
 */
export function readEnvFiles(directory: string): readonly FileVariable[] {
  const paths = namesIn(directory)
    .filter((name) => /^\.env(?:\.|$)|\.env$/.test(name) && !/example|sample|template|dist/i.test(name))
    .map((name) => join(directory, name));
  return paths.flatMap((path) =>
    Object.entries(parseEnv(readSecretFile(path))).map(([name, value = ""]) => ({ path, name, value })),
  );
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).sort();
  } catch {
    return [];
  }
}

/** A file with a password or a key is smaller than this. */
const mostBytes = 64 * 1024;

/** The text of the small file at `path` that holds a secret, or nothing if it is absent, unreadable or something else. */
export function readSecretFile(path: string): string {
  try {
    const stats = statSync(path);
    // Reading a pipe would wait for ever.
    return stats.isFile() && stats.size <= mostBytes ? readFileSync(path, "utf8").trim() : "";
  } catch {
    return "";
  }
}
