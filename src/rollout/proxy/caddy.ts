import { request } from "node:http";
import { join } from "node:path";

/** Caddy's admin API is on this socket in the live directory (`admin unix//run/live/admin.sock`), never on a port. */
const socketName = "admin.sock";

/**
 * How many requests Caddy has under way to the containers `names`.
 * See https://caddyserver.com/docs/api#get-reverse-proxyupstreams
 *
 * @returns null where Caddy does not answer
 */
export async function requestsInFlight(directory: string, names: readonly string[]): Promise<number | null> {
  const answer = await get(directory, "/reverse_proxy/upstreams");
  if (answer === null) return null;
  const upstreams: readonly { readonly address: string; readonly num_requests: number }[] | null =
    JSON.parse(answer);
  const mine = (upstreams ?? []).filter(({ address }) => names.includes(address.replace(/:\d+$/, "")));
  return mine.reduce((sum, { num_requests }) => sum + num_requests, 0);
}

/**
 * The live files that Caddy's configuration reads (`{file./run/live/app}` → `app`).
 *
 * @returns null where Caddy does not answer
 */
export async function liveFilesRead(directory: string): Promise<ReadonlySet<string> | null> {
  const answer = await get(directory, "/config/");
  if (answer === null) return null;
  return new Set([...answer.matchAll(/\{file\.[^}]*\/([^/}]+)\}/g)].map(([, file]) => file ?? ""));
}

function get(directory: string, path: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socketPath = join(directory, socketName);
    // Caddy refuses an Origin it does not know; without that header, and with this host, it answers.
    const options = { socketPath, path, headers: { host: "localhost" }, agent: false, timeout: 5_000 };
    const sent = request(options, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", () => resolve(null));
      answer.on("end", () => resolve(answer.statusCode === 200 ? Buffer.concat(chunks).toString() : null));
    });
    sent.on("timeout", () => sent.destroy());
    sent.on("error", () => resolve(null));
    sent.end();
  });
}
