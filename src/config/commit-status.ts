import { gitHosts } from "./git-hosts.ts";
import { readPrivateFile } from "./notify-file.ts";
import { makeSecret, type Secret } from "./secret.ts";

export const statusHosts = ["github", "gitea", "forgejo", "gitlab", "bitbucket-cloud"] as const;

/** A repository at a git host. */
export interface HostedRepository {
  readonly host: (typeof statusHosts)[number];
  /** Its address for people. */
  readonly url: URL;
}

/** Where the results of deployments are shown on the commit. */
export interface CommitStatus extends HostedRepository {
  readonly token: Secret;
}

/**
 * Reads the address of a repository at a git host: `https://github.com/octo/app`, or with the kind of the host before it
 * `gitea+https://git.example.com/octo/app`.
 *
 * @returns null if it is something else, or the kind of the host is not known
 */
export function parseHostedRepository(text: string): HostedRepository | null {
  const [, word, address = ""] = /^(?:([a-z-]+)\+)?(https?:\/\/.+)$/.exec(text) ?? [];
  if (!URL.canParse(address)) return null;
  const url = new URL(address);
  url.pathname = url.pathname.replace(/\/+$/, "").replace(/\.git$/, "");
  const host = statusHosts.find((one) =>
    word === undefined ? gitHosts[one].site === url.host : one === word,
  );
  const isPlain = url.username + url.password + url.search + url.hash === "";
  const isRepository = /^(?:\/[\w.~-]+){2,}$/.test(url.pathname);
  return host !== undefined && isPlain && isRepository ? { host, url } : null;
}

/**
 * Reads the token with which results are shown on commits.
 *
 * @returns a sentence if it cannot be used; null if no results are wanted
 */
export function readCommitStatus(
  repository: HostedRepository | null,
  tokenPath: string | null,
): CommitStatus | string | null {
  if (repository === null && tokenPath === null) return null;
  if (tokenPath === null) return "COMMIT_STATUS_URL is set, and COMMIT_STATUS_TOKEN_FILE is not.";
  if (repository === null) return "COMMIT_STATUS_TOKEN_FILE is set, and COMMIT_STATUS_URL is not.";
  const text = readPrivateFile("COMMIT_STATUS_TOKEN_FILE", tokenPath);
  if (typeof text !== "string") return text.fault;
  const token = text.trim();
  if (!/^[\x21-\x7e]{8,}$/.test(token)) {
    return `COMMIT_STATUS_TOKEN_FILE names ${tokenPath}, which is not one token on one line.`;
  }
  return Object.freeze({ ...repository, token: makeSecret(token) });
}
