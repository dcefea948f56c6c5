import type { IncomingMessage } from "node:http";
import { type BlockList, isIP, SocketAddress } from "node:net";

/**
 * Finds the client behind the `trusted` proxies. X-Forwarded-For is read from the right, the end that the nearest proxy
 * wrote, and only as long as its writer is trusted: a client can send any value, to which proxies append. An entry that
 * is not an address ends the search at its writer.
 *
 * @returns an IP address in its usual form; null if the connection is gone
 */
export function clientAddress({ socket, headers }: IncomingMessage, trusted: BlockList): string | null {
  let client = canonicalAddress(socket.remoteAddress ?? "");
  const forwarded = headers["x-forwarded-for"];
  if (client === null || forwarded === undefined) return client;
  for (const entry of String(forwarded).split(",").reverse()) {
    if (!isIn(trusted, client)) return client;
    const previous = canonicalAddress(withoutPort(entry.trim()));
    if (previous === null) return client;
    client = previous;
  }
  return client;
}

/** Whether `address`, in its usual form, is one of a list. */
export function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}

/** Some proxies add the port: `203.0.113.7:4711`, `[2001:db8::7]:4711`. */
function withoutPort(entry: string): string {
  const { bracketed, plain } =
    /^(?:\[(?<bracketed>[^\]]*)\]|(?<plain>[\d.]+))(?::\d{1,5})?$/.exec(entry)?.groups ?? {};
  return bracketed ?? plain ?? entry;
}

/** One text for each address: IPv6 in short form, without a zone, and IPv4 that is mapped into it as IPv4. */
function canonicalAddress(text: string): string | null {
  const [address = ""] = text.split("%", 1);
  const version = isIP(address);
  if (version !== 6) return version === 4 ? address : null;
  return new SocketAddress({ address, family: "ipv6" }).address.replace(/^::ffff:(?=\d+\.)/, "");
}
