import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What the service has the roll-out of a deployment do while the new version is guarded: end the guard, or go back. */
type Order = "end" | "back";

function orderPath(statePath: string, deploymentId: string | number): string {
  return join(statePath, "rollout", `deployment-${deploymentId}.guard`);
}

/** The order that the service has given, or null. @param deploymentId DEPLOY_ID; without it there is no such service */
export function readGuardOrder(statePath: string, deploymentId: string | undefined): Order | null {
  if (!/^\d+$/.test(deploymentId ?? "")) return null;
  try {
    const text = readFileSync(orderPath(statePath, deploymentId ?? ""), "utf8").trim();
    return text === "end" || text === "back" ? text : null;
  } catch {
    return null;
  }
}

/** Gives an order to the roll-out of a deployment. The file may be read by its script's user. @throws the system's error */
export function giveGuardOrder(statePath: string, deploymentId: number, order: Order): void {
  writeFileSync(orderPath(statePath, deploymentId), order, { mode: 0o644 });
}

/** Removes an order that nobody needs any more. */
export function removeGuardOrder(statePath: string, deploymentId: number): void {
  rmSync(orderPath(statePath, deploymentId), { force: true });
}
