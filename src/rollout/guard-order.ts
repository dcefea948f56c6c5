import { chmodSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "#platform/files";

/** What the service has the roll-out of a deployment do while the new version is guarded: end the guard, or go back. */
type Order = "end" | "back";

/**
 * The order that the service has given, or null.
 *
 * @param env HOTPUSH_ORDERS and DEPLOY_ID; without them there is no such service
 */
export function readGuardOrder({
  HOTPUSH_ORDERS: path,
  DEPLOY_ID: id = "",
}: NodeJS.ProcessEnv): Order | null {
  if (!path || !/^\d+$/.test(id)) return null;
  try {
    const text = readFileSync(join(path, id), "utf8");
    return text === "end" || text === "back" ? text : null;
  } catch {
    return null;
  }
}

/**
 * Gives an order to the roll-out of a deployment.
 *
 * @param ordersPath a directory of the service: it is made, and users of scripts may pass through it and read
 * @throws the system's error
 */
export function giveGuardOrder(ordersPath: string, deploymentId: number, order: Order): void {
  if (mkdirSync(ordersPath, { recursive: true }) !== undefined) chmodSync(ordersPath, 0o711);
  replaceFile(join(ordersPath, String(deploymentId)), order, { mode: 0o644, owner: null });
}

/** Removes an order that nobody needs any more. */
export function removeGuardOrder(ordersPath: string, deploymentId: number): void {
  rmSync(join(ordersPath, String(deploymentId)), { force: true });
}
