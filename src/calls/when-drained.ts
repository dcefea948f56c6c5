import type { ServerResponse } from "node:http";

/** Resolves when the reader of an answer has caught up, or has gone; within the next turn of the event loop if it is not behind. */
export function whenDrained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve();
    if (!response.writableNeedDrain) {
      setImmediate(resolve);
      return;
    }
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
  });
}
