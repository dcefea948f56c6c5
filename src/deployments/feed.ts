import type { Log } from "../log.ts";

/** What happens to a deployment while it happens. */
export type FeedEvent =
  | { readonly kind: "line"; readonly line: string }
  | { readonly kind: "step" }
  /** Its state is another one now; the database has it. */
  | { readonly kind: "changed" };

/** Tells whoever follows a deployment, in this process and at once. What nobody follows costs nothing. */
export interface Feed {
  readonly tell: (deploymentId: number, event: FeedEvent) => void;
  /** @returns a function that ends it */
  readonly follow: (deploymentId: number, listener: (event: FeedEvent) => void) => () => void;
}

/** Makes the feed; a listener that throws is told in `log` and costs nobody else anything. */
export function createFeed(log: Log): Feed {
  const listeners = new Map<number, Set<(event: FeedEvent) => void>>();
  return {
    tell(deploymentId, event) {
      for (const listener of listeners.get(deploymentId) ?? []) {
        try {
          listener(event);
        } catch (error) {
          log.error({ event: "control.failed", err: error }, "What happens could not be told to a follower");
        }
      }
    },
    follow(deploymentId, listener) {
      const followers = listeners.get(deploymentId) ?? new Set();
      listeners.set(deploymentId, followers.add(listener));
      return () => {
        followers.delete(listener);
        if (followers.size === 0) listeners.delete(deploymentId);
      };
    },
  };
}
