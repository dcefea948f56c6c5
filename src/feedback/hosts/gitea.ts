import type { HostedRepository } from "../../config/commit-status.ts";
import { cut, type HostApi, isPermitted, ownerAndName } from "./host-api.ts";

const states = { running: "pending", succeeded: "success", failed: "failure", cancelled: "error" } as const;
const longestDescription = 255;

/** The API of Gitea and of Forgejo. */
export const giteaApi: HostApi = {
  authorize: (token) => ({ authorization: `token ${token.reveal()}` }),
  repository: (repository) => new URL(addressOf(repository)),
  // A commit that is not there is a fault of the server to some versions.
  mayShow: ({ status }) => status === 500 || isPermitted({ status }),
  status(repository, { commit, context, state, description, link }) {
    const body = {
      ...{ state: states[state], context, description: cut(description, longestDescription) },
      ...(link ? { target_url: link } : {}),
    };
    return { method: "POST", url: new URL(`${addressOf(repository)}/statuses/${commit}`), body };
  },
};

function addressOf(repository: HostedRepository): string {
  const { root, path } = ownerAndName(repository);
  return `${root}/api/v1/repos/${path}`;
}
