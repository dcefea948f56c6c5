import type { AddressInfo } from "node:net";
import type { Environment } from "../config/settings.ts";
import type { Log } from "../log.ts";
import { closeServer, listen } from "../platform/listening.ts";
import type { RunningService } from "../run.ts";
import { connectRun } from "./run-client.ts";
import { createPage } from "./server.ts";
import { readPageSettings } from "./settings.ts";

/**
 * Starts the page: a client of `hotpush run` that keeps nothing, and can do only what its visitors can.
 *
 * @throws ProblemError if it cannot run with these settings
 */
export async function startPage(env: Environment, log: Log): Promise<RunningService> {
  const settings = readPageSettings(env);
  const run = connectRun(settings.socket);
  const server = createPage(settings, { run }, log);
  await listen(server, settings, "PAGE");
  return {
    address: server.address() as AddressInfo,
    close: () => closeServer(server, 0),
  };
}
