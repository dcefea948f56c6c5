import { formatDuration } from "#config/duration";
import { type ServerFiles, serverCommands, serverServices } from "#config/server";
import type { DeploymentSummary, Would } from "#deployments/push";
import type { HttpAnswer } from "#platform/http";

/** The answer, or the error of the system or of OpenSSL that prevented it. */
export type DeliveryReply = HttpAnswer | NodeJS.ErrnoException;

/** What an answer means: whether the push was or would be deployed (or the ping was answered), and what a person reads. */
export interface Verdict {
  readonly isGood: boolean;
  /** One word for programs: `accepted`, `would-deploy`, `pong`, `ignored`, `unauthorized`, `not-hotpush` … */
  readonly outcome: string;
  /** What happened, then what to do if it is not good. */
  readonly text: string;
}

/** The members that an answer of Hotpush may have. */
interface ServiceAnswer {
  readonly status?: unknown;
  readonly code?: string;
  readonly title?: string;
  readonly detail?: string;
  readonly type?: string;
  readonly deployment?: DeploymentSummary;
  readonly would?: Would;
}

/**
 * Reads the answer to a delivery that was sent to `url`.
 *
 * @param server the server that has the project; null: a service of its own
 */
export function readVerdict(
  reply: DeliveryReply,
  url: URL,
  server: Pick<ServerFiles, "path"> | null,
): Verdict {
  const commands = server === null ? ownCommands : commandsOf(server);
  if (reply instanceof Error) return bad("unreachable", explainFailure(reply, url, commands));
  const answer = parsed(reply.body.toString());
  return judgeAnswer(answer, reply.status, commands) ?? judgeForeign(reply, url, commands);
}

/** What a person types when the service does not answer as it should. */
interface Commands {
  readonly start: string;
  readonly logs: string;
  readonly proxyLogs: string;
  /** After the secrets differed. */
  readonly compare: string;
}

const ownCommands: Commands = {
  start: "docker compose up -d, or systemctl start hotpush",
  logs: "docker compose logs hotpush, or journalctl -u hotpush",
  proxyLogs: "docker compose logs caddy",
  compare:
    "After a change of .env, recreate the service (docker compose up -d). To see which secret it has: docker compose exec hotpush printenv WEBHOOK_SECRET",
};

function commandsOf(server: Pick<ServerFiles, "path">): Commands {
  const { start, logsOf } = serverCommands(server);
  return {
    ...{ start, logs: logsOf(serverServices.front), proxyLogs: logsOf(serverServices.caddy) },
    compare:
      "A change of the project's file counts within a few seconds. To see whether the service can use the file: hotpush projects",
  };
}

/** @returns null if the answer is not one of Hotpush */
function judgeAnswer(answer: ServiceAnswer, status: number, commands: Commands): Verdict | null {
  switch (answer.status) {
    case "pong":
      return good("pong", "A signed ping reached the service.");
    case "accepted":
      return good("accepted", acceptedText(answer));
    case "dry-run":
      return judgeDryRun(answer.would ?? {});
    case "duplicate":
      return bad("duplicate", `The service has had this delivery before. ${answer.detail}`);
    case "ignored":
      return bad("ignored", `The push reached the service and is ignored. ${answer.detail}`);
    default:
      return String(answer.type).startsWith("urn:hotpush:problem:")
        ? refused(answer, status, commands)
        : null;
  }
}

/** If no process deploys at the moment, the push is stored and has no deployment yet. */
function acceptedText({ deployment, detail = "" }: ServiceAnswer): string {
  if (deployment === undefined) return `A signed push reached the service. ${detail}`;
  const { id, commit, state } = deployment;
  return `A signed push reached the service: deployment ${id} of ${short(commit)} is ${state}. ${detail}`.trim();
}

/** A newer service may have a result that is not known here. */
function judgeDryRun(would: Would | object): Verdict {
  const reached = "A signed test push reached the service";
  if ("deploy" in would) {
    const { commit, after, when: moment } = would.deploy;
    const held = moment === "resumed" ? ", when its queue is resumed (hotpush resume)" : "";
    const when = after ? `, after deployment ${after.id}, which runs` : held;
    return good("would-deploy", `${reached} and would deploy ${short(commit)}${when}.`);
  }
  if ("duplicate" in would)
    return bad("would-be-duplicate", `${reached}, which knows it already. ${would.duplicate.detail}`);
  if ("ignore" in would)
    return bad("would-ignore", `${reached} and would be ignored. ${would.ignore.detail}`);
  if ("fail" in would)
    return bad("would-fail", `${reached}, but its deployment would fail. ${would.fail.detail}`);
  return bad(
    "would-fail",
    `${reached}, whose version answers what this one cannot read. Update Hotpush here.`,
  );
}

function refused({ code, title, detail }: ServiceAnswer, status: number, { compare }: Commands): Verdict {
  if (status !== 401) return bad(String(code), `The service refused it (${status}). ${title}: ${detail}`);
  const text = "The secrets differ: this command did not sign with the WEBHOOK_SECRET of the service (401).";
  return bad("unauthorized", `${text} ${compare}`);
}

function judgeForeign({ status, headers }: HttpAnswer, { href, pathname }: URL, commands: Commands): Verdict {
  if (status >= 300 && status < 400) {
    const target = String(headers.location ?? "another address");
    return bad(
      "redirected",
      `${href} redirects to ${target} (${status}). Git hosts do not follow a POST there: give them the final address, as its payload URL and here as --url.`,
    );
  }
  const server = String(headers.server ?? "something else");
  const text = `${href} was answered with ${status} by ${server}, not by Hotpush. ${adviceOn(status, pathname, commands)}`;
  return bad("not-hotpush", text);
}

function adviceOn(status: number, path: string, { start, logs }: Commands): string {
  if (status === 502 || status === 503 || status === 504) {
    return `The proxy answers, but the service behind it does not. Start it: ${start}. If it stops again, see: ${logs}`;
  }
  if (status === 401 || status === 403) {
    return `The proxy asks for a password, or lets nobody in. Let it pass ${path} on unchanged: the signature keeps strangers out.`;
  }
  return `Let the proxy pass ${path} on to Hotpush (port 9000 in its container), or give the right address with --url.`;
}

/** Why a delivery to `url` had no answer, and what to do. */
function explainFailure(
  error: NodeJS.ErrnoException,
  { href, hostname, host, port, protocol }: URL,
  { start, proxyLogs }: Commands,
): string {
  const code = codeOf(error);
  switch (code) {
    case "ECONNREFUSED":
      return `Nothing listens at ${host} (connection refused). Start the service: ${start}; or give its address with --url.`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `The name ${hostname} is not known. Create its DNS record, or give another address with --url.`;
    case "ETIMEDOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return `${host} did not answer in time. Is port ${port || (protocol === "https:" ? 443 : 80)} open in the firewall? A git host waits as long as this command did.`;
    case "ECONNRESET":
    case "EPIPE":
      return `${host} closed the connection without an answer. If it speaks https, the address must begin with https://.`;
  }
  return /CERT|SSL|TLS|EPROTO|VERIFY|ISSUER/.test(code)
    ? `${tlsFault(code, host, proxyLogs)} A git host refuses such a certificate as well.`
    : `${href} could not be reached: ${error.message}.`;
}

function tlsFault(code: string, host: string, proxyLogs: string): string {
  if (code === "CERT_HAS_EXPIRED") return `The certificate of ${host} has expired. Renew it.`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `The certificate of ${host} is for another name. Use the name in it, or get one for this name.`;
  }
  if (code.includes("ALERT_INTERNAL_ERROR")) {
    return `${host} has no certificate for this name yet. Caddy gets one by itself when the name's DNS record leads here and ports 80 and 443 are open; it says why not in: ${proxyLogs}.`;
  }
  if (code === "EPROTO" || code.includes("WRONG_VERSION")) {
    return `${host} does not speak https here. Use http://, or the port that does.`;
  }
  return `The certificate of ${host} is not signed by an authority that this machine knows (${code}).`;
}

/** What was seen, such as `Answered with 200, in 12 ms.` */
export function describeReply(reply: DeliveryReply, durationMs: number): string {
  const what = reply instanceof Error ? `No answer (${codeOf(reply)})` : `Answered with ${reply.status}`;
  return `${what}, in ${formatDuration(durationMs)}.`;
}

/** The name of an error, such as `ECONNREFUSED`. */
export function codeOf({ code, name }: NodeJS.ErrnoException): string {
  return code ?? name;
}

function parsed(body: string): ServiceAnswer {
  try {
    return Object(JSON.parse(body)) as ServiceAnswer;
  } catch {
    return {};
  }
}

function good(outcome: string, text: string): Verdict {
  return { isGood: true, outcome, text };
}

function bad(outcome: string, text: string): Verdict {
  return { isGood: false, outcome, text: text.trim() };
}

function short(commit: string): string {
  return commit.slice(0, 7);
}
