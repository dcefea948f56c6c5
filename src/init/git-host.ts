import type { GitRemote } from "./git-checkout.ts";

/** The git hosts whose pushes Hotpush verifies, by the names that the command line takes. */
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

/** Which git host a remote is at, by its name alone; nothing is asked over the network. Null: the name says nothing. */
export function gitHostOf({ hostname }: Pick<GitRemote, "hostname">): GitHost | null {
  return known.get(hostname) ?? hints.find(([hint]) => hint.test(hostname))?.[1] ?? null;
}

export function isGitHost(text: string): text is GitHost {
  return (gitHosts as readonly string[]).includes(text);
}
