import { cut, type HostApi } from "./host-api.ts";

const states = { running: "running", succeeded: "success", failed: "failed", cancelled: "canceled" } as const;
const longestDescription = 255;

/** The API of GitLab. A project is named by its whole path, with the groups that it is in. */
export const gitlabApi: HostApi = {
  authorize: (token) => ({ "private-token": token.reveal() }),
  status({ url }, { commit, branch, context, state, description, link }) {
    const project = encodeURIComponent(url.pathname.slice(1));
    const body = {
      ...{ state: states[state], name: context, ref: branch },
      description: cut(description, longestDescription),
      ...(link ? { target_url: link } : {}),
    };
    const path = `/api/v4/projects/${project}/statuses/${commit}`;
    return { method: "POST", url: new URL(path, url), body };
  },
  // The host refuses a state that it has: "Cannot transition status via :run from :running".
  hasItAlready: ({ status, body }) => status === 400 && body.includes("Cannot transition status"),
};
