import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Unexpected } from "./expect.ts";

/** The directory and environment of a command. */
export interface Place {
  readonly path: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const timeoutMs = 30_000;

/**
 * Runs git with `args`.
 *
 * @returns its output, without the white space at the end
 * @throws Unexpected if it fails, with its error output
 */
export async function git(
  { path, env }: Place,
  ...args: readonly string[]
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  try {
    const { stdout, stderr } = await promisify(execFile)("git", args, { cwd: path, env, timeout: timeoutMs });
    return { stdout: stdout.trimEnd(), stderr: stderr.trimEnd() };
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    if (code === "ENOENT")
      throw new Unexpected("git is not installed. Install it (Debian: apt-get install git).");
    throw new Unexpected(`git ${args.join(" ")} failed (${String(code)}): ${stderr?.trim()}`);
  }
}
