import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ConnectionLoad } from "./connection-load.ts";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

const loadPath = fileURLToPath(new URL("connection-load.ts", import.meta.url));

/**
 * Starts a flood of connections in another process, so that it does not slow down the test's own requests. Waits until
 * `enough` have been opened.
 */
export async function startFlood(scope: Scope, options: ConnectionLoad, enough: number) {
  const load = spawn(process.execPath, [loadPath, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  scope.after(() => load.kill("SIGKILL"));
  let opened = 0;
  createInterface(load.stdout).on("line", (line) => {
    opened = Number(line);
  });
  await until("the flood has begun", () => opened >= enough);
  return { opened: () => opened };
}
