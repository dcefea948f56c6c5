import { execFile } from "node:child_process";
import { promisify } from "node:util";

const timeoutMs = 10_000;

/**
 * Runs git in `directory`; nothing that it could ask is answered.
 *
 * @returns what it printed, trimmed
 * @throws Error with git's own words in `stderr` where it did not end well
 */
export async function git(directory: string, ...args: readonly string[]): Promise<string> {
  const neverAsk = { GIT_TERMINAL_PROMPT: "0", GIT_ASKPASS: "/bin/false", SSH_ASKPASS: "/bin/false" };
  const ssh = process.env.GIT_SSH_COMMAND || "ssh -o BatchMode=yes";
  const env = { ...process.env, ...neverAsk, GIT_SSH_COMMAND: ssh, LC_ALL: "C" };
  const { stdout } = await promisify(execFile)("git", ["-C", directory, ...args], {
    timeout: timeoutMs,
    env,
  });
  return stdout.trim();
}
