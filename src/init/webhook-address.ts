import { isIP } from "node:net";
import type { Front, PublishedPort } from "./reverse-proxy.ts";

/** Where the git host sends its deliveries to, and for which names Caddy answers. */
export interface Address {
  /** With its path: `https://shop.example.org/webhook`. */
  readonly payloadUrl: URL;
  /** The site addresses of the Caddyfile; null where the proxy is not ours. */
  readonly site: string | null;
  readonly hasCertificate: boolean;
}

export interface AddressOptions {
  readonly front: Front;
  /** The public address, as a person gave it or `.env` has it; null: not known. */
  readonly url: URL | null;
  /** SITE of .env, which decides where it is there; null: nothing was decided yet. */
  readonly site: string | null;
  /** Whether nothing but what was set up here listens on the port. */
  readonly isFree: (port: number) => boolean;
}

/** Decides the addresses. Without a public one, the payload URL is that of this machine. */
export function findAddress({ front, url, site: decided, isFree }: AddressOptions): Address {
  const payloadUrl = url ?? localUrl(front);
  if (front.kind !== "new-caddy") return { payloadUrl, site: null, hasCertificate: false };
  if (decided !== null) return { payloadUrl, site: decided, hasCertificate: hasName(decided) };
  const hasCertificate = url !== null && canHaveCertificate(url, front.published, isFree);
  const taken = hasCertificate ? [80, 443] : [];
  const plain = front.published.map(({ port }) => port).filter((port) => !taken.includes(port));
  const sites = [...(hasCertificate ? [payloadUrl.hostname] : []), ...plain.map((port) => `http://:${port}`)];
  return { payloadUrl, site: [...new Set(sites)].join(", "), hasCertificate };
}

/** Reads what a person typed: a bare name is taken for https; without a path it is `/webhook`. Null: no address. */
export function parseAddress(text: string): URL | null {
  const trimmed = text.trim();
  const full = /^[a-z]+:\/\//i.test(trimmed) ? trimmed : `https://${trimmed}`;
  if (trimmed === "" || /\s/.test(trimmed) || !/^https?:\/\//i.test(full) || !URL.canParse(full)) return null;
  const url = new URL(full);
  if (url.pathname === "/") url.pathname = "/webhook";
  return url;
}

export function isLoopback({ hostname }: URL): boolean {
  return hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
}

/**
 * Caddy can get a certificate for a name that leads here, if it may have ports 80 and 443. An app that is published to
 * this machine only has another proxy before it already, which has the certificate; so has one where 443 is taken.
 */
function canHaveCertificate(
  { protocol, hostname }: URL,
  published: readonly PublishedPort[],
  isFree: (port: number) => boolean,
): boolean {
  const isPublicName = protocol === "https:" && isIP(hostname) === 0 && hostname.includes(".");
  const isOpen = published.some(({ address }) => !address.startsWith("127.") && address !== "::1");
  const has80 = published.some(({ port }) => port === 80);
  return isPublicName && isOpen && isFree(443) && (has80 || isFree(80));
}

function hasName(site: string): boolean {
  return site.split(/,\s*/).some((one) => one !== "" && !/^(?:http:\/\/|:)/.test(one));
}

function localUrl(front: Front): URL {
  const port =
    front.kind === "new-caddy" ? (front.published[0]?.port ?? 80) : front.kind === "none" ? 9000 : 80;
  return new URL(`http://127.0.0.1:${port}/webhook`);
}
