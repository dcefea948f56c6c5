import type { GitRemote } from "./git-checkout.ts";

/** The git hosts whose pushes Hotpush verifies, as they are named on the command line. */
export const gitHosts = [
  "github",
  "gitea",
  "forgejo",
  "gogs",
  "gitlab",
  "bitbucket",
  "bitbucket-data-center",
  "pagure",
  "gitness",
] as const;

export type GitHost = (typeof gitHosts)[number];

const known: ReadonlyMap<string, GitHost> = new Map([
  ["github.com", "github"],
  ["gitlab.com", "gitlab"],
  ["bitbucket.org", "bitbucket"],
  ["codeberg.org", "forgejo"],
  ["gitea.com", "gitea"],
  ["pagure.io", "pagure"],
]);

const hints: readonly (readonly [RegExp, GitHost])[] = [
  [/github/, "github"],
  [/gitlab/, "gitlab"],
  [/forgejo/, "forgejo"],
  [/gitea/, "gitea"],
  [/gogs/, "gogs"],
  [/bitbucket|stash/, "bitbucket-data-center"],
  [/pagure/, "pagure"],
  [/gitness|harness/, "gitness"],
];

/** Hosts whose repositories are `owner/name`: an earlier part of the path belongs to the URL of the host itself. */
const ownersOnly: readonly GitHost[] = ["gitea", "forgejo", "gogs", "bitbucket-data-center"];

/** The git host of a remote, by its hostname alone, without a request. Null: the name says nothing. */
export function gitHostOf({ hostname }: Pick<GitRemote, "hostname">): GitHost | null {
  return known.get(hostname) ?? hints.find(([hint]) => hint.test(hostname))?.[1] ?? null;
}

export function isGitHost(text: string): text is GitHost {
  return (gitHosts as readonly string[]).includes(text);
}

/** The name that a payload of `host` gives to the repository at `path` of its remote. */
export function payloadName(path: string, host: GitHost | null): string {
  if (host !== null && ownersOnly.includes(host)) return path.split("/").slice(-2).join("/");
  return host === "gitness" ? path.replace(/^git\//, "") : path;
}
