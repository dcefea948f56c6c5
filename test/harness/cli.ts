import "./environment.ts";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { noServer } from "./no-server.ts";

export const launcher = fileURLToPath(new URL("../../bin/hotpush", import.meta.url));

export interface CliOptions {
  readonly cwd: string;
  /** In addition to PATH and HOME; the environment of the tests is not passed on. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Standard input. */
  readonly input?: string;
}

export interface CliEnding {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the real command line in a process of its own. */
export async function runCli(
  args: readonly string[],
  { cwd, env = {}, input }: CliOptions,
): Promise<CliEnding> {
  const child = spawn(launcher, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd, ...noServer, ...env },
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => {}).end(input ?? "");
  const [code]: (number | null)[] = await once(child, "close");
  return { code: code ?? null, stdout, stderr };
}
