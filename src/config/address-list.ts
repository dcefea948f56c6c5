import { BlockList, isIP } from "node:net";

/** The ranges of private networks and of this machine itself, as Caddy's `private_ranges` has them. */
const privateRanges = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "fd00::/8", "::1"];

/**
 * Reads IP addresses, subnets in CIDR notation and the word `private_ranges`, separated by commas or spaces.
 *
 * @returns null if any entry is something else
 */
export function parseAddressList(text: string): BlockList | null {
  const list = new BlockList();
  const entries = text.split(/[\s,]+/).filter((entry) => entry !== "");
  const ranges = entries.flatMap((entry) => (entry === "private_ranges" ? privateRanges : [entry]));
  return ranges.every((range) => addRange(list, range)) ? list : null;
}

function addRange(list: BlockList, range: string): boolean {
  const [address = "", prefix, ...rest] = range.split("/");
  const version = isIP(address);
  if (version === 0 || address.includes("%") || rest.length > 0) return false;
  const family = version === 4 ? "ipv4" : "ipv6";
  if (prefix === undefined) {
    list.addAddress(address, family);
    return true;
  }
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > (version === 4 ? 32 : 128)) return false;
  list.addSubnet(address, Number(prefix), family);
  return true;
}
