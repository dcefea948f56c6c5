import { webhookUrl } from "../config/values.ts";

/** Reads a URL that a person typed: https if there is no scheme, `/webhook` if there is no path. Null: not a URL. */
export function parsePublicUrl(text: string): URL | null {
  const trimmed = text.trim();
  if (trimmed === "" || /\s/.test(trimmed)) return null;
  return webhookUrl(/^[a-z]+:\/\//i.test(trimmed) ? trimmed : `https://${trimmed}`);
}

export function isLoopback({ hostname }: URL): boolean {
  return hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
}
