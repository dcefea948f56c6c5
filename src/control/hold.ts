import { listRunning } from "../deployments/history.ts";
import type { Hold } from "../deployments/queue.ts";
import { printable } from "../platform/terminal/printable.ts";
import {
  type DeploymentJson,
  deploymentJson,
  instant,
  type ReportedJson,
  reportedJson,
} from "./deployment-json.ts";
import { type ControlContext, reportedName, type WholeRoute } from "./route.ts";

/** Why no deployment of any project starts, as commands print it with --json. */
export interface HoldJson {
  readonly since: string;
  readonly reason: string;
  readonly by: ReportedJson | null;
}

/** What a holder receives, one JSON object per line: `waiting` at most once, then `quiet`. */
export type HoldEvent =
  | { readonly event: "waiting"; readonly running: readonly DeploymentJson[] }
  /** Nothing runs, and nothing starts as long as the connection lasts. */
  | { readonly event: "quiet" };

/** @returns null if deployments may start */
export function holdJson({ holds }: ControlContext["turns"]): HoldJson | null {
  const [hold] = holds();
  return hold ? { since: instant(hold.sinceMs), reason: hold.reason, by: reportedJson(hold.heldBy) } : null;
}

const longestReason = 200;

/**
 * Keeps deployments from starting for as long as the connection lasts, so a command that is killed leaves nothing behind.
 * A running script goes on.
 */
export const holdDeployments: WholeRoute = ({ turns, store, log }, { body }) => ({
  kind: "stream",
  type: "application/x-ndjson",
  write(response) {
    const heldBy = reportedName(body);
    const reason = typeof body.reason === "string" ? printable(body.reason, longestReason) : "";
    const hold: Hold = { sinceMs: Date.now(), reason, heldBy };
    const send = (event: HoldEvent) => response.write(`${JSON.stringify(event)}\n`);
    let isQuiet = false;
    const release = turns.holdAll(hold, () => {
      isQuiet = true;
      send({ event: "quiet" });
    });
    log.info({ event: "control.hold", requestedBy: heldBy, reason }, `No deployment starts: ${reason}`);
    if (!isQuiet) send({ event: "waiting", running: listRunning(store).map(deploymentJson) });
    response.once("close", () => {
      release();
      log.info({ event: "control.released" }, "Deployments may start again");
    });
  },
});
