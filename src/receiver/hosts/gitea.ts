import { claimGiteaSignature } from "./gitea-signature.ts";
import { readGithubPush } from "./github-push.ts";
import type { Host } from "./host.ts";

/**
 * Gitea. Its push has no `deleted` field: a deleted ref is told by an all-zero `after`. The test button sends a real
 * push whose `before` is its `after`.
 * https://docs.gitea.com/usage/webhooks, modules/structs/hook.go
 */
export const gitea: Host = {
  name: "gitea",
  eventHeader: "x-gitea-event",
  deliveryHeader: "x-gitea-delivery",
  claimSignature: claimGiteaSignature,
  read(event, payload) {
    return event === "push" ? readGithubPush(payload) : { kind: "other-event", event };
  },
};
