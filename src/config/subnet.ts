import { isIPv4 } from "node:net";

/** A block of IPv4 addresses: `10.231.0.0/16` is 65,536 from 10.231.0.0 on. */
export interface Subnet {
  readonly firstAddress: number;
  readonly addressCount: number;
}

/** Reads an IPv4 subnet in CIDR notation. @returns null if `text` is anything else, or has bits set beyond its prefix */
export function parseSubnet(text: string): Subnet | null {
  const [address = "", prefix = "", ...rest] = text.split("/");
  if (!isIPv4(address) || !/^\d{1,2}$/.test(prefix) || Number(prefix) > 32 || rest.length > 0) return null;
  const firstAddress = address.split(".").reduce((number, byte) => number * 256 + Number(byte), 0);
  const addressCount = 2 ** (32 - Number(prefix));
  return firstAddress % addressCount === 0 ? { firstAddress, addressCount } : null;
}

/** A /27: 29 containers beside the gateway. */
export const networkAddressCount = 32;

/** Reads a subnet with room for the network of a project. @returns null if `text` is anything else */
export function parseNetworkRange(text: string): Subnet | null {
  const range = parseSubnet(text);
  return range && range.addressCount >= networkAddressCount ? range : null;
}

/** In CIDR notation. */
export function formatSubnet({ firstAddress, addressCount }: Subnet): string {
  const bytes = [24, 16, 8, 0].map((shift) => Math.floor(firstAddress / 2 ** shift) % 256);
  return `${bytes.join(".")}/${32 - Math.log2(addressCount)}`;
}

/** The first subnet for the network of a project in `range` that overlaps none of `taken`, or null. */
export function findFreeSubnet(range: Subnet, taken: readonly Subnet[]): Subnet | null {
  let candidate = { firstAddress: range.firstAddress, addressCount: networkAddressCount };
  while (endOf(candidate) <= endOf(range)) {
    const obstacle = taken.find((other) => overlap(candidate, other));
    if (obstacle === undefined) return candidate;
    // Sizes are powers of two, and aligned: nothing that is free is skipped.
    candidate = { ...candidate, firstAddress: Math.max(endOf(candidate), endOf(obstacle)) };
  }
  return null;
}

function overlap(one: Subnet, other: Subnet): boolean {
  return one.firstAddress < endOf(other) && other.firstAddress < endOf(one);
}

function endOf({ firstAddress, addressCount }: Subnet): number {
  return firstAddress + addressCount;
}
