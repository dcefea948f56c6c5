import { lookup } from "node:dns/promises";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type HttpAnswer, sendHttp } from "#platform/http";

/** What was asked from another machine, and how it went. */
export interface OutsideAnswer {
  /** What is right: `shop.example.org leads to 203.0.113.5`. */
  readonly claim: string;
  /** null: it is right; else what is wrong, and what to do. */
  readonly fault: string | null;
}

const timeoutMs = 5_000;
/** Caddy gets a certificate within that time if it can get one. */
const withinMs = 60_000;
const pauseMs = 2_000;

/**
 * Asks a project as its visitors and its git host do: the name, the ports, the certificate, the app, and the webhook.
 *
 * @param webhook the address that the git host sends to
 * @param address that of the server
 * @param waitMs how long it may take until all is right
 * @returns all answers up to the first fault that explains the others
 */
export async function askFromOutside(
  webhook: URL,
  address: string,
  waitMs: number = withinMs,
): Promise<readonly OutsideAnswer[]> {
  const endMs = performance.now() + waitMs;
  for (;;) {
    const answers: OutsideAnswer[] = [];
    for (const ask of questions) {
      answers.push(await ask(webhook, address));
      if (answers.at(-1)?.fault) break;
    }
    // No record changes within a minute.
    const isFinal = answers.length === 1 || answers.every(({ fault }) => fault === null);
    if (isFinal || performance.now() + pauseMs > endMs) return answers;
    await sleep(pauseMs);
  }
}

type Question = (webhook: URL, address: string) => Promise<OutsideAnswer>;

const questions: readonly Question[] = [askName, askPorts, askApp, askWebhook];

async function askName({ hostname }: URL, address: string): Promise<OutsideAnswer> {
  const found = await addressesOf(hostname);
  const fault = `${hostname} has no address yet. ${recordAdvice(hostname, address)}`;
  return {
    claim: `${hostname} leads to ${found.join(", ") || "nowhere"}`,
    fault: found.length > 0 ? null : fault,
  };
}

async function addressesOf(hostname: string): Promise<readonly string[]> {
  const found = await lookup(hostname.replace(/^\[|\]$/g, ""), { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}

function recordAdvice(hostname: string, address: string): string {
  const type = address.includes(":") ? "AAAA" : "A";
  return `Make this DNS record at the provider of the name, and run this again in some minutes: ${hostname} ${type} ${address}`;
}

async function askPorts({ hostname, protocol, port }: URL, address: string): Promise<OutsideAnswer> {
  const ports = port !== "" ? [Number(port)] : protocol === "https:" ? [80, 443] : [80];
  const claim = `port ${ports.join(" and ")} of ${hostname} can be reached`;
  for (const one of ports) {
    const code = await connectFault(hostname.replace(/^\[|\]$/g, ""), one);
    if (code === null) continue;
    const found = await addressesOf(hostname);
    const place = `Nobody answers at port ${one} of ${hostname} (${code})`;
    if (!found.includes(address))
      return {
        claim,
        fault: `${place}: it leads to ${found.join(", ")}, and the server is ${address}. ${recordAdvice(hostname, address)}`,
      };
    const cause =
      code === "ECONNREFUSED"
        ? "nothing listens, or a firewall of the server rejects it. On the server: hotpush doctor"
        : `a firewall drops it. Open TCP ${ports.join(" and ")} in the firewall of the server's provider`;
    return { claim, fault: `${place}: ${cause}; and if the server uses ufw: ufw allow ${one}/tcp` };
  }
  return { claim, fault: null };
}

/** @returns the code of the error; null if somebody listens */
function connectFault(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: timeoutMs });
    const end = (code: string | null) => {
      socket.destroy();
      resolve(code);
    };
    socket.once("connect", () => end(null)).once("timeout", () => end("ETIMEDOUT"));
    socket.once("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}

async function askApp({ origin, hostname, protocol }: URL): Promise<OutsideAnswer> {
  const certificate = protocol === "https:" ? " with a valid certificate" : "";
  const claim = `the app answers at ${origin}${certificate}`;
  const answer = await visit(new URL(origin), "GET");
  if (!(answer instanceof Error)) {
    const isServed = answer.status < 500 && !(answer.status === 404 && answer.body.length === 0);
    const fault = `${origin} answers with ${answer.status}. To see why, on the server: hotpush doctor, hotpush logs`;
    return { claim, fault: isServed ? null : fault };
  }
  const code = answer.code ?? answer.message;
  if (/CERT|SSL|TLS|EPROTO|VERIFY|ISSUER/.test(code)) {
    const logs = "docker compose --project-directory /etc/hotpush logs --tail 50 caddy";
    const fault = `${hostname} has no valid certificate (${code}). Caddy gets one by itself when the name leads to the server, and ports 80 and 443 are open. It says why not, on the server: ${logs}`;
    return { claim, fault };
  }
  return { claim, fault: `${origin} does not answer (${code}). On the server: hotpush doctor` };
}

/** Without a signature, so that the secret stays on the server: only Hotpush refuses like this. */
async function askWebhook(webhook: URL): Promise<OutsideAnswer> {
  const claim = `the webhook answers at ${webhook.href}`;
  const answer = await visit(webhook, "POST");
  if (answer instanceof Error)
    return { claim, fault: `${webhook.href} does not answer (${answer.code ?? answer.message}).` };
  const isOurs = answer.body.toString().includes("urn:hotpush:problem:signature_missing");
  const fault = `${webhook.href} was answered with ${answer.status}, not by Hotpush: something else is in front. Let it pass POST ${webhook.pathname} on unchanged.`;
  return { claim, fault: answer.status === 401 && isOurs ? null : fault };
}

function visit(url: URL, method: "GET" | "POST"): Promise<HttpAnswer | NodeJS.ErrnoException> {
  const body = method === "POST" ? { body: "{}" } : {};
  const headers = { "content-type": "application/json", "user-agent": "hotpush" };
  const request = { method, headers, timeoutMs, ...body };
  return sendHttp(url, request, longestBytes).catch((error: NodeJS.ErrnoException) => error);
}

const longestBytes = 64 * 1024;
