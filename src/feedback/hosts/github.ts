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
  status(repository, { commit, context, state, description, link }) {
    const { root, path } = ownerAndName(repository);
    const api = repository.url.host === "github.com" ? "https://api.github.com" : `${root}/api/v3`;
    const body = {
      ...{ state: states[state], context, description: cut(description, longestDescription) },
      ...(link ? { target_url: link } : {}),
    };
    return { method: "POST", url: new URL(`${api}/repos/${path}/statuses/${commit}`), body };
  },
};
