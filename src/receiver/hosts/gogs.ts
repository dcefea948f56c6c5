import { claimGiteaSignature } from "./gitea.ts";
import { readGithubPush } from "./github.ts";
import type { Host } from "./host.ts";

/**
 * Gogs. Its push has neither `head_commit` nor `deleted`; tags and deletions come as the events `create` and `delete`.
 * The test button sends a real push whose `before` is its `after`.
 * https://github.com/gogs/gogs, internal/database/webhook.go and internal/route/api/v1/types/webhook.go
 */
export const gogs: Host = {
  name: "gogs",
  eventHeader: "x-gogs-event",
  deliveryHeader: "x-gogs-delivery",
  claimSignature: claimGiteaSignature,
  read: readGithubPush,
};
