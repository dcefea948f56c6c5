import type { HostedRepository } from "../../config/commit-status.ts";
import { cut, type HostApi, isPermitted } from "./host-api.ts";

const states = { running: "running", succeeded: "success", failed: "failed", cancelled: "canceled" } as const;
const longestDescription = 255;

/** The API of GitLab. A project is named by its whole path, with the groups that it is in. */
export const gitlabApi: HostApi = {
  authorize: (token) => ({ "private-token": token.reveal() }),
  repository: addressOf,
  mayShow: isPermitted,
  status(repository, { commit, branch, context, state, description, link }) {
    const body = {
      ...{ state: states[state], name: context, ref: branch },
      description: cut(description, longestDescription),
      ...(link ? { target_url: link } : {}),
    };
    const url = new URL(`${addressOf(repository).href}/statuses/${commit}`);
    return { method: "POST", url, body };
  },
  // The host refuses a state that it has: "Cannot transition status via :run from :running".
  hasItAlready: ({ status, body }) => status === 400 && body.includes("Cannot transition status"),
};

function addressOf({ url }: HostedRepository): URL {
  return new URL(`/api/v4/projects/${encodeURIComponent(url.pathname.slice(1))}`, url);
}
