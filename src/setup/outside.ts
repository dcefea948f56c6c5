import { lookup } from "node:dns/promises";
import { untilRight } from "#platform/async";
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
  const { hostname } = webhook;
  // No record changes within a minute.
  if ((await addressesOf(hostname)).length === 0)
    return `${hostname} has no address yet. ${recordAdvice(hostname, address)}`;
  const findFault = async () =>
    (await findAppFault(webhook, address)) ?? (await findWebhookFault(webhook, dryRun));
  return await untilRight(findFault, { withinMs: waitMs, pauseMs });
}

export async function addressesOf(hostname: string): Promise<readonly string[]> {
  const found = await lookup(hostname.replace(/^\[|\]$/g, ""), { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}

function recordAdvice(hostname: string, address: string): string {
  const type = address.includes(":") ? "AAAA" : "A";
  return `Make this DNS record at the provider of the name, and run this again in some minutes: ${hostname} ${type} ${address}`;
}

/** Asks at port 80 too, which Caddy needs for a certificate, and where visitors come who type the name alone. */
async function findAppFault({ origin, hostname, protocol, port }: URL, address: string) {
  const asked = protocol === "https:" && port === "" ? [`http://${hostname}`, origin] : [origin];
  for (const one of asked) {
    const answer = await visit(new URL(one), { headers: { "user-agent": "hotpush" } });
    if (answer instanceof Error) return await connectionFault(new URL(one), address, answer);
    if (answer.status >= 500 || (answer.status === 404 && answer.body.length === 0))
      return `${one} answers with ${answer.status}. To see why, on the server: hotpush doctor, hotpush logs`;
  }
  return null;
}

async function connectionFault(
  { hostname, protocol, port }: URL,
  address: string,
  { code = "", message }: NodeJS.ErrnoException,
): Promise<string> {
  if (/CERT|SSL|TLS|EPROTO|VERIFY|ISSUER/.test(code)) {
    const compose = `docker compose --project-directory ${serverPath}`;
    return `${hostname} has no valid certificate (${code}). Caddy gets one by itself when the name leads to the server, and ports 80 and 443 are open, but tries more and more rarely. To have it try now, on the server, while no deployment runs, for no project can be reached for some seconds: ${compose} restart caddy. It says why not: ${compose} logs --tail 50 caddy`;
  }
  const tcp = port || (protocol === "https:" ? "443" : "80");
  const found = await addressesOf(hostname);
  const place = `Nobody answers at port ${tcp} of ${hostname} (${code || message})`;
  if (!found.includes(address))
    return `${place}: it leads to ${found.join(", ")}, and the server is ${address}. ${recordAdvice(hostname, address)}`;
  const cause =
    code === "ETIMEDOUT"
      ? `a firewall drops it. Open TCP ${tcp} in the firewall of the server's provider`
      : "nothing listens, or a firewall of the server rejects it. On the server: hotpush doctor";
  return `${place}: ${cause}; and if the server uses ufw: ufw allow ${tcp}/tcp`;
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
