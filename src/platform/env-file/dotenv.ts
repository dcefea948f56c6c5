import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { ProblemError } from "../../problems.ts";

/**
 * Adds what `.env` in `directory` says to `env`; what is in `env` already wins.
 *
 * @throws ProblemError `configuration_invalid` where the file is there and cannot be read
 */
export function withDotenv(env: NodeJS.ProcessEnv, directory: string): Record<string, string | undefined> {
  try {
    return { ...parseEnv(readFileSync(`${directory}/.env`, "utf8")), ...env };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return env;
    const detail = `The file ${directory}/.env is there but cannot be read (${code ?? "unknown error"}).`;
    throw new ProblemError({ code: "configuration_invalid", detail }, error);
  }
}
