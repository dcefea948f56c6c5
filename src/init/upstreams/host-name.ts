import { isIP } from "node:net";

/** Whether `text` is a DNS name in lower case, such as `shop.example.org` or `localhost`; an address is not. */
export function isHostName(text: string): boolean {
  if (text.length > 253 || isIP(text) !== 0) return false;
  return text.split(".").every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label));
}

/** A service's name as a label of a host name: `Web_UI` becomes `web-ui`. */
export function labelOf(service: string): string {
  return (
    service
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .replaceAll(/^-|-$/g, "")
      .slice(0, 63) || "app"
  );
}
