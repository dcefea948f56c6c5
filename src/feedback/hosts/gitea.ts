import { cut, type HostApi, ownerAndName } from "./host-api.ts";

const states = { running: "pending", succeeded: "success", failed: "failure", cancelled: "error" } as const;
const longestDescription = 255;

/** The API of Gitea and of Forgejo. */
export const giteaApi: HostApi = {
  authorize: (token) => ({ authorization: `token ${token.reveal()}` }),
  status(repository, { commit, context, state, description, link }) {
    const { root, path } = ownerAndName(repository);
    const body = {
      ...{ state: states[state], context, description: cut(description, longestDescription) },
      ...(link ? { target_url: link } : {}),
    };
    return { method: "POST", url: new URL(`${root}/api/v1/repos/${path}/statuses/${commit}`), body };
  },
};
