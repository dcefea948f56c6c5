import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { readSecretFile } from "./secret-file.ts";

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
