import type { DeploymentJson, ProjectJson } from "../../calls/shapes.ts";

type Repository = Pick<ProjectJson, "webUrl">;
type Host = Pick<DeploymentJson, "host">;

/** The commit at its git host; null if that is not known. */
export function commitLink({ webUrl }: Repository, { host }: Host, commit: string): string | null {
  if (webUrl === null || !isCommit(commit)) return null;
  const name = `${host} ${webUrl}`;
  if (/gitlab/.test(name)) return `${webUrl}/-/commit/${commit}`;
  return `${webUrl}/${/bitbucket/.test(name) ? "commits" : "commit"}/${commit}`;
}

/** What changed from one commit to another; GitHub, Gitea, Forgejo and Gogs have it at the same path. */
export function compareLink(
  { webUrl }: Repository,
  { host }: Host,
  { from, to }: { readonly from: string; readonly to: string },
): string | null {
  if (webUrl === null || from === to || !isCommit(from) || !isCommit(to)) return null;
  const name = `${host} ${webUrl}`;
  if (/gitlab/.test(name)) return `${webUrl}/-/compare/${from}...${to}`;
  if (/bitbucket/.test(name)) return `${webUrl}/branches/compare/${to}%0D${from}`;
  return /pagure|gitness|harness|unknown/.test(name) ? null : `${webUrl}/compare/${from}...${to}`;
}

function isCommit(text: string): boolean {
  return /^[0-9a-f]{40,64}$/.test(text);
}
