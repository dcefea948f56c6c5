import type { Log } from "../log.ts";
import type { OutputLine } from "./deployment.ts";

/** Something that happens to a deployment. */
export type DeploymentEvent =
  | { readonly kind: "line"; readonly line: OutputLine }
  | { readonly kind: "step" }
  /** Its state has changed; the database has the new one. */
  | { readonly kind: "changed" };

/** Passes the events of deployments on within this process, at once. An event without listeners costs nothing. */
export interface EventBus {
  readonly publish: (deploymentId: number, event: DeploymentEvent) => void;
  /** @returns a function that ends the subscription */
  readonly subscribe: (deploymentId: number, listener: (event: DeploymentEvent) => void) => () => void;
}

/** Makes an event bus. If a listener throws, that is logged and the other listeners still get the event. */
export function createEventBus(log: Log): EventBus {
  const listeners = new Map<number, Set<(event: DeploymentEvent) => void>>();
  return {
    publish(deploymentId, event) {
      for (const listener of listeners.get(deploymentId) ?? []) {
        try {
          listener(event);
        } catch (error) {
          log.error({ event: "control.failed", err: error }, "A follower could not be sent an event");
        }
      }
    },
    subscribe(deploymentId, listener) {
      const subscribers = listeners.get(deploymentId) ?? new Set();
      listeners.set(deploymentId, subscribers.add(listener));
      return () => {
        subscribers.delete(listener);
        if (subscribers.size === 0) listeners.delete(deploymentId);
      };
    },
  };
}
