import type { HostedRepository } from "../../config/commit-status.ts";
import { cut, type HostApi, ownerAndName } from "./host-api.ts";

const states = { running: "pending", succeeded: "success", failed: "failure", cancelled: "error" } as const;
const longestDescription = 140;

/** The REST API of GitHub and of GitHub Enterprise Server. */
export const githubApi: HostApi = {
  authorize: (token) => ({
    authorization: `Bearer ${token.reveal()}`,
    accept: "application/vnd.github+json",
    "x-github-api-version": "2022-11-28",
  }),
  repository: (repository) => new URL(addressOf(repository)),
  // Without the right, a public repository answers 404, as if it was not there.
  mayShow: ({ status }) => status === 422,
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
  const api = repository.url.host === "github.com" ? "https://api.github.com" : `${root}/api/v3`;
  return `${api}/repos/${path}`;
}
