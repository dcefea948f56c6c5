import { existsSync } from "node:fs";
import { formatDuration } from "../../config/duration.ts";
import { sendHttp } from "../../platform/http.ts";
import { outputOf } from "../../platform/run-command.ts";
import { type CheckFinding, type Fault, ok, okUnless, problem, quote, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";

/** Signed timestamps (GitLab, Standard Webhooks) are valid for five minutes, certificates for days. */
const allowedMs = 5 * 60_000;
const answerTimeoutMs = 5_000;

/** A wrong clock makes certificates invalid, and signed deliveries look like replays. */
export async function checkClock(context: DoctorContext): Promise<CheckFinding> {
  const site = await siteOfRemote(context);
  const dateMs = site === null ? Number.NaN : await dateOf(site);
  if (site !== null && !Number.isNaN(dateMs)) return judgeBy(site, dateMs);
  const faults = [...(await beforeLastCommit(context)), ...(await unsynchronised(context))];
  return okUnless(faults, "later than the last commit; no host could be asked");
}

function judgeBy(site: string, dateMs: number) {
  const { hostname } = new URL(site);
  const offMs = Math.abs(Date.now() - dateMs);
  if (offMs <= allowedMs) return ok(`the same as that of ${hostname}`);
  const direction = Date.now() < dateMs ? "behind" : "ahead of";
  const text = `The clock is ${formatDuration(offMs)} ${direction} that of ${hostname}.`;
  return problem(text, clockCommand(site));
}

async function siteOfRemote({ remote }: DoctorContext): Promise<string | null> {
  const answer = await remote();
  if (!("url" in answer) || answer.url.host === null) return null;
  const { scheme, host, port } = answer.url;
  if (scheme === "http") return `http://${host}:${port ?? 80}/`;
  return `https://${host}${scheme === "https" && port !== null ? `:${port}` : ""}/`;
}

/** The time at the host, in ms; NaN if it gives none. Its certificate may look invalid here, by the wrong clock. */
async function dateOf(site: string): Promise<number> {
  const request = { method: "HEAD", timeoutMs: answerTimeoutMs, acceptsAnyCertificate: true };
  try {
    const { headers } = await sendHttp(new URL(site), request);
    return Date.parse(headers.date ?? "");
  } catch {
    return Number.NaN;
  }
}

async function beforeLastCommit({ readGit }: DoctorContext): Promise<readonly Fault[]> {
  const seconds = await readGit("log", "-1", "--format=%ct");
  const committedAtMs = Number(seconds) * 1_000;
  if (seconds === null || Date.now() > committedAtMs - allowedMs) return [];
  const [now, then] = [new Date(), new Date(committedAtMs)].map((date) => date.toISOString().slice(0, 16));
  return [problem(`The clock shows ${now}, which is before the last commit (${then}).`, clockCommand(null))];
}

async function unsynchronised({ scriptEnv: env }: DoctorContext): Promise<readonly Fault[]> {
  if (!existsSync("/run/systemd/system")) return [];
  const argv = ["timedatectl", "show", "--property=NTPSynchronized", "--value"] as const;
  if ((await outputOf(argv, { env })) !== "no") return [];
  return [warning("No time server sets the clock.", setByNetwork)];
}

const setByNetwork = "timedatectl set-ntp true";

function clockCommand(site: string | null): string {
  if (existsSync("/run/systemd/system")) return setByNetwork;
  return `date --set "$(curl -skI ${quote(site ?? "https://github.com/")} | sed -n 's/^[Dd]ate: //p')"`;
}
