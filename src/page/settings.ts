import type { BlockList } from "node:net";
import { type Environment, machineVariables, pageVariables, readVariables } from "../config/settings.ts";
import { ProblemError } from "../problems.ts";

/** The settings of `hotpush page`. */
export interface PageSettings {
  readonly port: number;
  readonly host: string;
  /** Where people reach it. Requests for any other host are refused. */
  readonly url: URL;
  /** The socket of `hotpush run`. */
  readonly socket: string;
  /** The proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: BlockList;
}

/** @throws ProblemError `configuration_invalid` with a sentence for each error */
export function readPageSettings(env: Environment): PageSettings {
  const faults: string[] = [];
  const own = readVariables(pageVariables, env, faults);
  const { PAGE_URL, PAGE_SOCKET, STATE_PATH, TRUSTED_PROXIES } = machineVariables;
  const shared = readVariables({ PAGE_URL, PAGE_SOCKET, STATE_PATH, TRUSTED_PROXIES }, env, faults);
  const { PAGE_URL: url } = shared;
  if (!env.PAGE_URL)
    faults.push("PAGE_URL is missing: expected the page's address, such as https://hotpush.example.com.");
  if (faults.length > 0 || url === null)
    throw new ProblemError({ code: "configuration_invalid", detail: faults.join("\n") });
  return Object.freeze({
    port: own.PAGE_PORT,
    host: own.PAGE_HOST,
    url,
    socket: shared.PAGE_SOCKET ?? `${shared.STATE_PATH}/page.sock`,
    trustedProxies: shared.TRUSTED_PROXIES,
  });
}
