import { isIP } from "node:net";
import { webhookUrlOf } from "../../config/values.ts";

/** How the git host and visitors reach a project of the machine part. */
export interface ProjectAddress {
  /** The URL that the git host sends to, such as `https://shop.example.org/webhook`. */
  readonly payloadUrl: URL;
  /** The host name of the project; null if the URL has an address of the machine. */
  readonly name: string | null;
  /** Whether Caddy gets a certificate for it. */
  readonly hasCertificate: boolean;
}

/**
 * Decides the addresses of a project.
 *
 * @param url the URL of the webhook, from a person or an earlier run; null: not known
 * @param ports the ports of the machine that Caddy has
 */
export function findProjectAddress(
  url: URL | null,
  project: string,
  ports: { readonly http: number; readonly https: number },
): ProjectAddress {
  const given = url ?? new URL(`http://127.0.0.1:${ports.http}/webhook`);
  const name = hostNameOf(given);
  // Without a name of its own, the path says which project is meant.
  const payloadUrl = name === null ? webhookUrlOf(given, project) : given;
  const isPublic = ports.http === 80 && ports.https === 443;
  return { payloadUrl, name, hasCertificate: name !== null && isPublic && given.protocol === "https:" };
}

function hostNameOf({ hostname }: URL): string | null {
  const isAddress = isIP(hostname) !== 0 || hostname.startsWith("[");
  return isAddress || hostname === "localhost" ? null : hostname;
}
