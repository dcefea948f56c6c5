import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type HttpAnswer, type HttpRequest, sendHttp } from "#platform/http";
import type { SignedRequest } from "#send/send";
import { readVerdict } from "#send/verdict";

const timeoutMs = 5_000;
/** Where root's server is, which `hotpush up` sets up. */
const serverPath = "/etc/hotpush";
/** Caddy gets a certificate within that time if it can get one. */
const withinMs = 60_000;
const pauseMs = 2_000;

/**
 * Asks a project as its visitors and its git host do: the name, the ports, the certificate, the app, and the webhook.
 *
 * @param webhook the address that the git host sends to
 * @param address that of the server
 * @param dryRun a push that the server has signed, so that its secret stays there; it deploys nothing
 * @param waitMs how long it may take until all is right
 * @returns null if all is right; else what is wrong, and what to do: the first fault, which explains the others
 */
export async function askFromOutside(
  webhook: URL,
  address: string,
  dryRun: SignedRequest,
  waitMs: number = withinMs,
): Promise<string | null> {
  const endMs = performance.now() + waitMs;
  const nameFault = await findNameFault(webhook, address);
  // No record changes within a minute.
  if (nameFault !== null) return nameFault;
  for (;;) {
    const fault =
      (await findPortFault(webhook, address)) ??
      (await findAppFault(webhook)) ??
      (await findWebhookFault(webhook, dryRun));
    if (fault === null || performance.now() + pauseMs > endMs) return fault;
    await sleep(pauseMs);
  }
}

async function findNameFault({ hostname }: URL, address: string): Promise<string | null> {
  if ((await addressesOf(hostname)).length > 0) return null;
  return `${hostname} has no address yet. ${recordAdvice(hostname, address)}`;
}

async function addressesOf(hostname: string): Promise<readonly string[]> {
  const found = await lookup(hostname.replace(/^\[|\]$/g, ""), { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}

function recordAdvice(hostname: string, address: string): string {
  const type = address.includes(":") ? "AAAA" : "A";
  return `Make this DNS record at the provider of the name, and run this again in some minutes: ${hostname} ${type} ${address}`;
}

async function findPortFault(
  { hostname, protocol, port: own }: URL,
  address: string,
): Promise<string | null> {
  const usual = protocol === "https:" ? [80, 443] : [80];
  const ports = own === "" ? usual : [Number(own)];
  for (const port of ports) {
    const code = await connectFault(hostname.replace(/^\[|\]$/g, ""), port);
    if (code === null) continue;
    const found = await addressesOf(hostname);
    const place = `Nobody answers at port ${port} of ${hostname} (${code})`;
    if (!found.includes(address))
      return `${place}: it leads to ${found.join(", ")}, and the server is ${address}. ${recordAdvice(hostname, address)}`;
    const cause =
      code === "ECONNREFUSED"
        ? "nothing listens, or a firewall of the server rejects it. On the server: hotpush doctor"
        : `a firewall drops it. Open TCP ${ports.join(" and ")} in the firewall of the server's provider`;
    return `${place}: ${cause}; and if the server uses ufw: ufw allow ${port}/tcp`;
  }
  return null;
}

/** @returns the code of the error; null if somebody listens */
async function connectFault(host: string, port: number): Promise<string | null> {
  const socket = connect({ host, port });
  try {
    await once(socket, "connect", { signal: AbortSignal.timeout(timeoutMs) });
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ABORT_ERR" ? "ETIMEDOUT" : (code ?? message);
  } finally {
    socket.destroy();
  }
}

async function findAppFault({ origin, hostname }: URL): Promise<string | null> {
  const answer = await visit(new URL(origin), { headers: { "user-agent": "hotpush" } });
  if (!(answer instanceof Error)) {
    const isServed = answer.status < 500 && !(answer.status === 404 && answer.body.length === 0);
    if (isServed) return null;
    return `${origin} answers with ${answer.status}. To see why, on the server: hotpush doctor, hotpush logs`;
  }
  const code = answer.code ?? answer.message;
  if (!/CERT|SSL|TLS|EPROTO|VERIFY|ISSUER/.test(code))
    return `${origin} does not answer (${code}). On the server: hotpush doctor`;
  const logs = `docker compose --project-directory ${serverPath} logs --tail 50 caddy`;
  return `${hostname} has no valid certificate (${code}). Caddy gets one by itself when the name leads to the server, and ports 80 and 443 are open. It says why not, on the server: ${logs}`;
}

async function findWebhookFault(webhook: URL, dryRun: SignedRequest): Promise<string | null> {
  const { isGood, text } = readVerdict(await visit(webhook, dryRun), webhook, { path: serverPath });
  return isGood ? null : text;
}

function visit(url: URL, request: HttpRequest): Promise<HttpAnswer | NodeJS.ErrnoException> {
  const asked = { ...request, timeoutMs };
  return sendHttp(url, asked, longestBytes).catch((error: NodeJS.ErrnoException) => error);
}

const longestBytes = 64 * 1024;
