import { formatDuration } from "../config/duration.ts";
import type { DeliveryReply } from "./post.ts";

/** What an answer means: whether the push was or would be deployed (or the ping was answered), and what a person reads. */
export interface Verdict {
  readonly isGood: boolean;
  /** One word for programs: `accepted`, `would-deploy`, `pong`, `ignored`, `unauthorized`, `not-hotpush` … */
  readonly outcome: string;
  /** What happened, then what to do if it is not good. */
  readonly text: string;
}

interface Answer {
  readonly status?: unknown;
  readonly code?: unknown;
  readonly title?: unknown;
  readonly detail?: unknown;
  readonly reason?: unknown;
  readonly type?: unknown;
  readonly deployment?: Known;
  readonly would?: {
    readonly deploy?: { readonly commit: string; readonly when: string; readonly after?: Known };
    readonly duplicate?: { readonly deployment: Known; readonly detail: string };
    readonly ignore?: { readonly reason: string; readonly detail: string };
    readonly fail?: { readonly code: string; readonly detail: string };
  };
}

interface Known {
  readonly id: number;
  readonly ref: string;
  readonly commit: string;
  readonly state: string;
}

/** Reads the answer to a delivery that was sent to `url`. */
export function readVerdict(reply: DeliveryReply, url: URL): Verdict {
  if (reply.kind === "failure") return bad("unreachable", explainFailure(reply, url));
  const answer = parsed(reply.body);
  if (isOurs(answer)) return judgeAnswer(answer, reply.status);
  return judgeForeign(reply, url);
}

function judgeAnswer(answer: Answer, status: number): Verdict {
  switch (answer.status) {
    case "pong":
      return { isGood: true, outcome: "pong", text: "A signed ping reached the service." };
    case "accepted": {
      const { id = 0, commit = "", state = "" } = answer.deployment ?? {};
      const text = `A signed push reached the service: deployment ${id} of ${short(commit)} is ${state}.`;
      return { isGood: true, outcome: "accepted", text };
    }
    case "dry-run":
      return judgeDryRun(answer.would ?? {});
    case "duplicate":
      return bad("duplicate", `The service has had this delivery before. ${answer.detail}`);
    case "ignored":
      return bad("ignored", `The push reached the service and is ignored. ${answer.detail}`);
    default:
      return refused(answer, status);
  }
}

function judgeDryRun({ deploy, duplicate, ignore, fail }: NonNullable<Answer["would"]>): Verdict {
  const reached = "A signed test push reached the service";
  if (deploy) {
    const when = deploy.after ? `, after deployment ${deploy.after.id}, which runs` : "";
    const text = `${reached} and would deploy ${short(deploy.commit)}${when}.`;
    return { isGood: true, outcome: "would-deploy", text };
  }
  if (duplicate) return bad("would-be-duplicate", `${reached}, which knows it already. ${duplicate.detail}`);
  if (ignore) return bad("would-ignore", `${reached} and would be ignored. ${ignore.detail}`);
  return bad("would-fail", `${reached}, but its deployment would fail. ${fail?.detail ?? ""}`);
}

function refused({ code, title, detail }: Answer, status: number): Verdict {
  const said = `The service refused it (${status}). ${title}: ${detail}`;
  if (status !== 401) return bad(String(code), said);
  const text =
    "The secrets differ: this command did not sign with the WEBHOOK_SECRET of the service (401). After a change of .env, recreate the service (docker compose up -d). To see which secret it has: docker compose exec hotpush printenv WEBHOOK_SECRET";
  return bad("unauthorized", text);
}

function judgeForeign(reply: Extract<DeliveryReply, { kind: "answer" }>, url: URL): Verdict {
  const { status, headers } = reply;
  if (status >= 300 && status < 400) {
    const target = String(headers.location ?? "another address");
    return bad(
      "redirected",
      `${url.href} redirects to ${target} (${status}). Git hosts do not follow a POST there: give them the final address, as its payload URL and here as --url.`,
    );
  }
  const server = headers.server === undefined ? "something else" : String(headers.server);
  const who = `${url.href} was answered with ${status} by ${server}, not by Hotpush.`;
  return bad("not-hotpush", `${who} ${adviceOn(status, url)}`);
}

function adviceOn(status: number, url: URL): string {
  if (status === 502 || status === 503 || status === 504) {
    return "The proxy answers, but the service behind it does not. Start it: docker compose up -d. If it stops again, see: docker compose logs hotpush";
  }
  if (status === 401 || status === 403) {
    return `The proxy asks for a password, or lets nobody in. Let it pass ${url.pathname} on unchanged: the signature keeps strangers out.`;
  }
  return `Let the proxy pass ${url.pathname} on to Hotpush (port 9000 in its container), or give the right address with --url.`;
}

/** Why a delivery to `url` had no answer, and what to do. */
function explainFailure({ code, message }: Extract<DeliveryReply, { kind: "failure" }>, url: URL): string {
  const { hostname, host } = url;
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  switch (code) {
    case "ECONNREFUSED":
      return `Nothing listens at ${host} (connection refused). Start the service: docker compose up -d, or systemctl start hotpush; or give its address with --url.`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `The name ${hostname} is not known. Create its DNS record, or give another address with --url.`;
    case "ETIMEDOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return `${host} did not answer in time. Is port ${port} open in the firewall? A git host waits as long as this command did.`;
    case "ECONNRESET":
    case "EPIPE":
      return `${host} closed the connection without an answer. If it speaks https, the address must begin with https://.`;
  }
  return isTls(code)
    ? `${tlsFault(code, host)} A git host refuses such a certificate as well.`
    : `${url.href} could not be reached: ${message}.`;
}

function tlsFault(code: string, host: string): string {
  if (code === "CERT_HAS_EXPIRED") return `The certificate of ${host} has expired. Renew it.`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `The certificate of ${host} is for another name. Use the name in it, or get one for this name.`;
  }
  if (code.includes("ALERT_INTERNAL_ERROR")) {
    return `${host} has no certificate for this name yet. Caddy gets one by itself when the name's DNS record leads here and ports 80 and 443 are open; it says why not in: docker compose logs caddy.`;
  }
  if (code === "EPROTO" || code.includes("WRONG_VERSION")) {
    return `${host} does not speak https here. Use http://, or the port that does.`;
  }
  return `The certificate of ${host} is not signed by an authority that this machine knows (${code}).`;
}

function isTls(code: string): boolean {
  return /CERT|SSL|TLS|EPROTO|VERIFY|ISSUER/.test(code);
}

/** What was seen, such as `Answered with 200, in 12 ms.` */
export function describeReply(reply: DeliveryReply, durationMs: number): string {
  const what = reply.kind === "answer" ? `Answered with ${reply.status}` : `No answer (${reply.code})`;
  return `${what}, in ${formatDuration(durationMs)}.`;
}

function isOurs(answer: Answer | null): answer is Answer {
  if (answer === null) return false;
  const known: readonly unknown[] = ["pong", "accepted", "dry-run", "duplicate", "ignored"];
  return known.includes(answer.status) || String(answer.type).startsWith("urn:hotpush:problem:");
}

function parsed(body: string): Answer | null {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? value : null;
  } catch {
    return null;
  }
}

function bad(outcome: string, text: string): Verdict {
  return { isGood: false, outcome, text: text.trim() };
}

function short(commit: string): string {
  return commit.slice(0, 7);
}
