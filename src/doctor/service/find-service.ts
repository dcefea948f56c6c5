import { look, ping, type Reply } from "./ask-hotpush.ts";

/** What is at the port of the service on this machine. */
export type FoundService =
  | { readonly kind: "hotpush"; readonly acceptsSecret: boolean | null; readonly url: string }
  | { readonly kind: "another" }
  | { readonly kind: "nothing" };

/** Asks at the service's port who is there. `acceptsSecret` is null where there is no secret to try. */
export async function findService(host: string, port: number, secret: string | null): Promise<FoundService> {
  const url = `http://${reachable(host)}:${port}`;
  const reply = await (secret === null ? look(`${url}/webhook`) : ping(`${url}/webhook`, secret));
  if (reply.kind === "none") return { kind: isNobody(reply) ? "nothing" : "another" };
  if (!reply.isPong && reply.code === null) return { kind: "another" };
  return { kind: "hotpush", acceptsSecret: secret === null ? null : reply.isPong, url };
}

/** An address to ask for a service that listens on `host`. */
function reachable(host: string): string {
  if (host === "0.0.0.0" || host === "localhost") return "127.0.0.1";
  return host.includes(":") ? `[${host === "::" ? "::1" : host}]` : host;
}

function isNobody({ code }: Extract<Reply, { kind: "none" }>): boolean {
  return ["ECONNREFUSED", "EHOSTUNREACH", "EADDRNOTAVAIL", "ENETUNREACH"].includes(code);
}
