import { join } from "node:path";
import { siteBehind } from "#config/git-hosts";
import { readForeignFile } from "#platform/foreign-files";
import { parseGitRemoteUrl } from "#platform/git";

/** git's own configuration of a checkout is a few hundred bytes. */
const mostBytes = 64 * 1024;
const mostLines = 10_000;

/**
 * The address at which people see the repository of a checkout, such as `https://github.com/octo/app`, by its remote.
 *
 * @returns null if the remote is no address of a git host, or cannot be read
 */
export function webAddress(repoPath: string): string | null {
  const path = join(repoPath, ".git/config");
  try {
    return addressOf(originIn(readForeignFile(path, { mostBytes, isCut: true }).toString()));
  } catch {
    return null;
  }
}

/** A line is looked at once: the owner of the checkout writes this file, and others wait for the answer. */
function originIn(config: string): string {
  let isOrigin = false;
  for (const line of config.split("\n", mostLines)) {
    const [name = "", value] = line.split(/=(.*)/s, 2);
    if (line.trimStart().startsWith("[")) isOrigin = line.trim() === '[remote "origin"]';
    else if (isOrigin && name.trim() === "url" && value !== undefined) return value.trim();
  }
  return "";
}

function addressOf(url: string): string | null {
  const { scheme, host, port, path } = parseGitRemoteUrl(url);
  const isHttp = scheme === "https" || scheme === "http";
  if (host === null || !/^[\w.-]+$/.test(host) || !/^[\w./~-]+$/.test(path)) return null;
  const origin = `${isHttp ? scheme : "https"}://${siteBehind(host)}${isHttp && port !== null ? `:${port}` : ""}`;
  return `${origin}/${path.replace(/\/$/, "").replace(/\.git$/, "")}`;
}
