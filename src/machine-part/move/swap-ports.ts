import { isIP } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { sendHttp } from "../../platform/http.ts";
import { CommandError } from "../../problems.ts";

/** What the addresses of a project answered: the status by URL, null if nothing answered. */
export type SiteAnswers = ReadonlyMap<string, number | null>;

const answerTimeoutMs = 2_000;
const pollMs = 20;
/** How long the new Caddy may take until the site answers as before. */
const answersWithinMs = 8_000;

/** Asks each of `urls` once, on this machine. */
export async function askSites(urls: readonly URL[]): Promise<SiteAnswers> {
  return new Map(await Promise.all(urls.map(async (url) => [url.href, await ask(url)] as const)));
}

/**
 * Stops the Caddy that has the ports, starts the one that gets them, and waits until the site answers as before.
 *
 * @param before the answers of the old one
 * @param withinMs how long the new one may take until then
 * @returns for how long nothing may have answered
 * @throws CommandError if the site does not answer as before
 */
export async function swapPorts(
  { stopOld, startNew }: { readonly stopOld: () => Promise<void>; readonly startNew: () => Promise<void> },
  before: SiteAnswers,
  withinMs: number = answersWithinMs,
): Promise<number> {
  const startMs = performance.now();
  await stopOld();
  await startNew();
  for (const [url, status] of before) await untilAsBefore(new URL(url), status, startMs + withinMs);
  return performance.now() - startMs;
}

async function untilAsBefore(url: URL, before: number | null, deadlineMs: number): Promise<void> {
  for (;;) {
    const now = await ask(url);
    if (isAsGood(now, before)) return;
    if (performance.now() > deadlineMs) {
      const answer = now === null ? "does not answer" : `answers with status ${now}`;
      throw new CommandError(`${url.href} ${answer} through the new Caddy.`);
    }
    await sleep(pollMs);
  }
}

/** An address that nothing had before need not answer well: nobody knows how it should. */
function isAsGood(now: number | null, before: number | null): boolean {
  if (before === null || before >= 500) return true;
  return now !== null && now < 500 && (now !== 404 || before === 404);
}

/** The name of the site may lead elsewhere: to a proxy of a content network, or nowhere yet. */
async function ask(url: URL): Promise<number | null> {
  const here = new URL(url);
  if (isIP(url.hostname.replace(/^\[|\]$/g, "")) === 0) here.hostname = "127.0.0.1";
  try {
    const headers = { host: url.host, connection: "close" };
    const request = { headers, timeoutMs: answerTimeoutMs, acceptsAnyCertificate: true };
    return (await sendHttp(here, request)).status;
  } catch {
    return null;
  }
}
