import { claimGiteaSignature } from "./gitea.ts";
import { readGithubPush } from "./github.ts";
import type { Host } from "./host.ts";

/**
 * Forgejo. Its `create` and `delete` events carry a full ref too, but no `after`: only the shape distinguishes
 * them from a push. The test button sends a real push whose `before` is its `after`.
 * https://forgejo.org/docs/latest/user/webhooks/, services/webhook/shared/payloader.go
 */
export const forgejo: Host = {
  name: "forgejo",
  eventHeader: "x-forgejo-event",
  deliveryHeader: "x-forgejo-delivery",
  claimSignature: claimGiteaSignature,
  read: readGithubPush,
};
