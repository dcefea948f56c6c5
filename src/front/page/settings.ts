import type { BlockList } from "node:net";
import type { MachineSettings } from "#config/machine";

/** The settings of the page. */
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

/** @returns null without an address: then there is no page */
export function pageSettingsOf(machine: MachineSettings): PageSettings | null {
  const { pageUrl: url, pagePort: port, pageHost: host, pageSocket: socket, trustedProxies } = machine;
  return url && { url, port, host, socket, trustedProxies };
}
