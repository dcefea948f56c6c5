import { isIP } from "node:net";
import { webhookUrl } from "../config/values.ts";
import type { PublishedPort, ReverseProxy } from "./reverse-proxy.ts";

/** The URL that the git host sends to, and the names that Caddy answers for. */
export interface WebhookAddress {
  /** With its path: `https://shop.example.org/webhook`. */
  readonly payloadUrl: URL;
  /** The site addresses of the Caddyfile; null if the proxy is not ours. */
  readonly site: string | null;
  readonly hasCertificate: boolean;
}

export interface AddressOptions {
  readonly proxy: ReverseProxy;
  /** The public URL, from a person or from `.env`; null: not known. */
  readonly url: URL | null;
  /** SITE of .env, which decides if it is set. */
  readonly site: string | null;
  /** Whether nothing listens on the port, or only what was set up here. */
  readonly isFree: (port: number) => boolean;
}

/** Decides the addresses. Without a public URL, the payload URL is one of this machine. */
export function findAddress({ proxy, url, site: decided, isFree }: AddressOptions): WebhookAddress {
  const payloadUrl = url ?? localUrl(proxy);
  if (proxy.kind !== "new-caddy") return { payloadUrl, site: null, hasCertificate: false };
  if (decided !== null) return { payloadUrl, site: decided, hasCertificate: hasName(decided) };
  const hasCertificate = url !== null && canHaveCertificate(url, proxy.published, isFree);
  const taken = hasCertificate ? [80, 443] : [];
  const plain = proxy.published.map(({ port }) => port).filter((port) => !taken.includes(port));
  const sites = [...(hasCertificate ? [payloadUrl.hostname] : []), ...plain.map((port) => `http://:${port}`)];
  return { payloadUrl, site: [...new Set(sites)].join(", "), hasCertificate };
}

/** Reads a URL that a person typed: https if there is no scheme, `/webhook` if there is no path. Null: not a URL. */
export function parsePublicUrl(text: string): URL | null {
  const trimmed = text.trim();
  if (trimmed === "" || /\s/.test(trimmed)) return null;
  return webhookUrl(/^[a-z]+:\/\//i.test(trimmed) ? trimmed : `https://${trimmed}`);
}

export function isLoopback({ hostname }: URL): boolean {
  return hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
}

/**
 * Caddy can get a certificate for a name of this server if ports 80 and 443 are free. An app that is published only to this
 * machine has another proxy in front of it, with the certificate. So has an app on a machine whose port 443 is taken.
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

function localUrl(proxy: ReverseProxy): URL {
  const port =
    proxy.kind === "new-caddy" ? (proxy.published[0]?.port ?? 80) : proxy.kind === "none" ? 9000 : 80;
  return new URL(`http://127.0.0.1:${port}/webhook`);
}
