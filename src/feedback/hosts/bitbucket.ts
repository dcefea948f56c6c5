import { createHash } from "node:crypto";
import type { HostedRepository } from "../../config/commit-status.ts";
import { cut, type HostApi, isPermitted, ownerAndName } from "./host-api.ts";

const states = {
  running: "INPROGRESS",
  succeeded: "SUCCESSFUL",
  failed: "FAILED",
  cancelled: "STOPPED",
} as const;
const longestDescription = 255;
const longestKey = 40;

/** The API of Bitbucket Cloud. */
export const bitbucketApi: HostApi = {
  authorize: (token) => ({ authorization: `Bearer ${token.reveal()}` }),
  repository: (repository) => new URL(addressOf(repository)),
  mayShow: isPermitted,
  status(repository, { commit, context, state, description, link }) {
    const body = {
      ...{ key: keyOf(context), state: states[state], name: context },
      description: cut(description, longestDescription),
      // It must have one.
      url: link ?? `${repository.url.href}/commits/${commit}`,
    };
    const url = new URL(`${addressOf(repository)}/commit/${commit}/statuses/build`);
    return { method: "POST", url, body };
  },
};

function keyOf(context: string): string {
  if (context.length <= longestKey) return context;
  const hash = createHash("sha256").update(context).digest("hex").slice(0, 8);
  return `${context.slice(0, longestKey - hash.length - 1)}-${hash}`;
}

function addressOf(repository: HostedRepository): string {
  const { root, path } = ownerAndName(repository);
  const api = repository.url.host === "bitbucket.org" ? "https://api.bitbucket.org/2.0" : `${root}/2.0`;
  return `${api}/repositories/${path}`;
}
