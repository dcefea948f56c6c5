import type { BlockList } from "node:net";
import { isIP } from "node:net";
import { machineVariables } from "../config/machine.ts";
import { type Environment, readVariables, type Variable } from "../config/read-variables.ts";
import { wholeNumber } from "../config/values.ts";
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

export const pageVariables = {
  PAGE_PORT: {
    fallback: () => "9001",
    expected: "a TCP port, 1 to 65535 (0 takes any free one)",
    read: (text) => wholeNumber(text, 0, 65_535),
  },
  PAGE_HOST: {
    fallback: () => "0.0.0.0",
    expected: "an IP address of this machine, or localhost",
    read: (text) => (isIP(text) !== 0 || text === "localhost" ? text : null),
  },
} as const satisfies Record<string, Variable<unknown>>;

/** @throws ProblemError `configuration_invalid` with a sentence for each error */
export function readPageSettings(env: Environment): PageSettings {
  const faults: string[] = [];
  const own = readVariables(pageVariables, env, faults);
  const { PAGE_URL, PAGE_SOCKET, STATE_PATH, TRUSTED_PROXIES } = machineVariables;
  const shared = readVariables({ PAGE_URL, PAGE_SOCKET, STATE_PATH, TRUSTED_PROXIES }, env, faults);
  const { PAGE_URL: url } = shared;
  if (url === "" && !env.PAGE_URL)
    faults.push("PAGE_URL is missing: expected the page's address, such as https://hotpush.example.com.");
  if (faults.length > 0 || url === "")
    throw new ProblemError({ code: "configuration_invalid", detail: faults.join("\n") });
  return Object.freeze({
    port: own.PAGE_PORT,
    host: own.PAGE_HOST,
    url,
    socket: shared.PAGE_SOCKET || `${shared.STATE_PATH}/page.sock`,
    trustedProxies: shared.TRUSTED_PROXIES,
  });
}
