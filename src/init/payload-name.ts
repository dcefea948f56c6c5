import type { GitHost } from "./git-host.ts";

/** Hosts whose repositories are `owner/name`: what comes before in the path is where the host itself is on its server. */
const ownersOnly: readonly (GitHost | null)[] = ["gitea", "forgejo", "gogs", "bitbucket-data-center"];

/** What the payload of `host` calls the repository that is at `path` of its remote. */
export function payloadName(path: string, host: GitHost | null): string {
  if (ownersOnly.includes(host)) return path.split("/").slice(-2).join("/");
  return host === "gitness" ? path.replace(/^git\//, "") : path;
}
