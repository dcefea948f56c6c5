import { type Branch, branches } from "../config.ts";
import { parseGitRemoteUrl, sshOverHttps } from "../platform/git-remote-url.ts";
import { git } from "./git.ts";

/** Where a git remote is, as its URL says; credentials in it are left behind. */
export interface GitRemote {
  /** Without a port: `github.com`. */
  readonly hostname: string;
  /** `owner/name`, or deeper where the host has groups in groups; without `.git`. */
  readonly path: string;
  readonly isSsh: boolean;
  /** Where its pages are: the address itself for http and https; by ssh, https at the same name is a guess. */
  readonly origin: string;
}

/**
 * Reads the URL of a remote: `git@host:owner/name.git`, `ssh://git@host:2222/owner/name`, `https://host/owner/name.git`.
 * An ssh alias made of a host's name (`github.com-shop:owner/name`, as for several deploy keys) counts as that host.
 *
 * @returns null for a path on this machine and for what is no URL of a remote
 */
export function parseRemoteUrl(url: string): GitRemote | null {
  const { scheme, host, port, path } = parseGitRemoteUrl(url);
  const plain = decoded(path)
    .replace(/^[~/]+|\/+$/g, "")
    .replace(/\.git$/, "");
  if (host === null || plain === "" || /\s/.test(plain)) return null;
  const written = host.includes(":") ? `[${host}]` : host;
  if (scheme === "https" || scheme === "http") {
    const site = `${scheme}://${written}:${port ?? ""}`;
    if (!URL.canParse(site)) return null;
    const { hostname, origin } = new URL(site);
    return { hostname: realName(hostname), path: plain, isSsh: false, origin };
  }
  const hostname = realName(written.toLowerCase());
  return { hostname, path: plain, isSsh: scheme === "ssh", origin: `https://${hostname}` };
}

/** The URL of the remote `name` (`origin` before any other) of the repository in `directory`, or null where it has none. */
export async function readRemoteUrl(directory: string): Promise<string | null> {
  try {
    const names = (await git(directory, "remote")).split("\n").filter(Boolean);
    const name = names.includes("origin") ? "origin" : names[0];
    return name === undefined ? null : await git(directory, "remote", "get-url", name);
  } catch {
    return null;
  }
}

/**
 * The branch that the HEAD of the remote `origin` points at, if it is one that is deployed: asked of the remote, or, if
 * that does not answer, as `git clone` has found it.
 */
export async function readRemoteBranch(directory: string): Promise<Branch | null> {
  const asked = await git(directory, "ls-remote", "--symref", "--", "origin", "HEAD").catch(() => "");
  const [, name] = /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(asked) ?? [];
  const cloned = async () => {
    const ref = await git(directory, "symbolic-ref", "--quiet", "refs/remotes/origin/HEAD").catch(() => "");
    return ref.replace(/^refs\/remotes\/origin\//, "");
  };
  const head = name ?? (await cloned());
  return branches.find((branch) => branch === head) ?? null;
}

function realName(name: string): string {
  const alias = /^((?:github|gitlab)\.com|bitbucket\.org|codeberg\.org)[-_.]/.exec(name);
  const [usual] = [...sshOverHttps].find(([, other]) => other === name) ?? [];
  return alias?.[1] ?? usual ?? name;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
