import type { Log } from "#log";

/** Says within this process that something has happened to a deployment: its log or the database has what. */
export interface EventBus {
  readonly publish: (deploymentId: number) => void;
  /** @returns a function that ends the subscription */
  readonly subscribe: (deploymentId: number, listener: () => void) => () => void;
}

/** Makes an event bus. If a listener throws, that is logged and the other listeners are still called. */
export function createEventBus(log: Log): EventBus {
  const listeners = new Map<number, Set<() => void>>();
  return {
    publish(deploymentId) {
      for (const listener of listeners.get(deploymentId) ?? []) {
        try {
          listener();
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
