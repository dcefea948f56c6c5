import { readGithubPush } from "./github.ts";
import type { Host } from "./host.ts";
import { bodySignatureIn } from "./signature-headers.ts";

/**
 * The signatures of Gitea, Forgejo and Gogs. Gitea also sends the headers of Gogs and GitHub, Forgejo sends all four, and
 * all carry the same HMAC-SHA256; each one that is there must be right. Without a secret they are sent empty.
 * `X-Hub-Signature` is the old SHA-1 and is not read.
 * https://docs.gitea.com/usage/webhooks, services/webhook/deliver.go
 */
export const claimGiteaSignature = bodySignatureIn(
  "x-forgejo-signature",
  "x-gitea-signature",
  "x-gogs-signature",
  "x-hub-signature-256",
);

/**
 * Gitea. Its push has no `deleted` field: an all-zero `after` says that the ref was deleted. The test button sends a real
 * push whose `before` is its `after`.
 * https://docs.gitea.com/usage/webhooks, modules/structs/hook.go
 */
export const gitea: Host = {
  name: "gitea",
  eventHeader: "x-gitea-event",
  deliveryHeader: "x-gitea-delivery",
  claimSignature: claimGiteaSignature,
  read: readGithubPush,
};
