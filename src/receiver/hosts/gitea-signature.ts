import { bodySignatureIn } from "./body-signature.ts";

/**
 * The signatures of Gitea and its kin. Gitea sends Gogs' header and GitHub's beside its own, Forgejo sends all four,
 * and all carry the same HMAC-SHA256; each one that is there has to be right. Without a secret they are sent empty.
 * `X-Hub-Signature` is the old SHA-1 and is not read.
 * https://docs.gitea.com/usage/webhooks, services/webhook/deliver.go
 */
export const claimGiteaSignature = bodySignatureIn(
  { header: "x-forgejo-signature", prefix: "" },
  { header: "x-gitea-signature", prefix: "" },
  { header: "x-gogs-signature", prefix: "" },
  { header: "x-hub-signature-256", prefix: "sha256=" },
);
