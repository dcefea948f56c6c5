import type { ServerResponse } from "node:http";
import type { ControlContext } from "./context.ts";
import { notFound, wantedDeployment } from "./history.ts";
import { openLogSnapshot } from "./log-snapshot.ts";
import type { Reply } from "./reply.ts";
import type { Asked } from "./routes.ts";

/** What a deployment has printed so far, as it stands in its log. */
export function showLog({ store, statePath, log }: ControlContext, { id }: Asked): Reply {
  const deployment = wantedDeployment(store, id);
  if (deployment === null) return notFound(id);
  const snapshot = openLogSnapshot(statePath, deployment.id);
  return { kind: "stream", type: "text/plain; charset=utf-8", write: (response) => void pour(response) };

  async function pour(response: ServerResponse): Promise<void> {
    try {
      for await (const chunk of snapshot.read()) {
        if (response.destroyed) break;
        if (!response.write(chunk)) await drained(response);
      }
      response.end();
    } catch (error) {
      log.error({ event: "control.failed", err: error }, "The log of a deployment could not be read");
      response.destroy();
    }
  }
}

/** Resolves when the reader has caught up, or has gone. */
export function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    if (response.destroyed) resolve();
    else response.on("drain", done).on("close", done);
  });
}
