import { join } from "node:path";
import { siteBehind } from "#config/git-hosts";
import { attempt } from "#platform/files";
import { readForeignFile } from "#platform/foreign-files";
import { parseGitRemoteUrl } from "#platform/git";

/** git's own configuration of a checkout is a few hundred bytes. Its owner writes it, and others wait for the answer. */
const mostBytes = 8 * 1024;
const origin = /^\[remote "origin"\]\n(?:(?!\[).*\n)*?[ \t]*url *= *(.+)$/m;

/**
 * The address at which people see the repository of a checkout, such as `https://github.com/octo/app`, by its remote.
 *
 * @returns null if the remote is no address of a git host, or cannot be read
 */
export function webAddress(repoPath: string): string | null {
  const path = join(repoPath, ".git/config");
  const config = attempt(() => readForeignFile(path, { mostBytes, isCut: true }).toString(), "");
  return addressOf(origin.exec(config)?.[1]?.trim() ?? "");
}

function addressOf(url: string): string | null {
  const { scheme, host, port, path } = parseGitRemoteUrl(url);
  const isHttp = scheme === "https" || scheme === "http";
  if (host === null || !/^[\w.-]+$/.test(host) || !/^[\w./~-]+$/.test(path)) return null;
  const base = `${isHttp ? scheme : "https"}://${siteBehind(host)}${isHttp && port !== null ? `:${port}` : ""}`;
  return `${base}/${path.replace(/\/$/, "").replace(/\.git$/, "")}`;
}
