import { type ServerFiles, serverCommands } from "#config/server";
import type { DeploymentSummary, Would } from "#deployments/push";
import { attempt } from "#platform/files";
import type { HttpAnswer } from "#platform/http";

/** The server that has the project; null: a service of its own. */
export type SentTo = Pick<ServerFiles, "path"> | null;

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

/** Reads the answer to a delivery that was sent to `url`. Hotpush's own answers explain themselves. */
export function readVerdict(reply: DeliveryReply, url: URL, server: SentTo): Verdict {
  if (reply instanceof Error) return judgeSilence(reply, url, server);
  const answer = parsed(reply.body.toString());
  const { status, deployment, would, code, title, detail = "" } = answer;
  const reached = "A signed push reached the service";
  if (status === "pong") return good("pong", "A signed ping reached the service.");
  // If no process deploys at the moment, the push is stored and has no deployment yet.
  if (status === "accepted")
    return good(
      "accepted",
      deployment === undefined
        ? `${reached}. ${detail}`
        : `${reached}: deployment ${deployment.id} of ${deployment.commit.slice(0, 7)} is ${deployment.state}. ${detail}`,
    );
  if (status === "dry-run") return judgeDryRun(would ?? {});
  if (status === "duplicate" || status === "ignored") return bad(status, `${reached}. ${detail}`);
  if (!String(answer.type).startsWith("urn:hotpush:problem:")) return judgeForeign(reply, url, server);
  if (reply.status !== 401)
    return bad(String(code), `The service refused it (${reply.status}). ${title}: ${detail}`);
  const check =
    "After a change of its secret, restart the service; the file of a project counts within a few seconds.";
  return bad(
    "unauthorized",
    `The secrets differ: this command did not sign with the WEBHOOK_SECRET of the service (401). ${check}`,
  );
}

/** A newer service may have a result that is not known here. */
function judgeDryRun(would: Would | object): Verdict {
  const reached = "A signed test push reached the service";
  if ("deploy" in would) {
    const { commit, after, when: moment } = would.deploy;
    const held = moment === "resumed" ? ", when its queue is resumed (hotpush resume)" : "";
    const when = after ? `, after deployment ${after.id}, which runs` : held;
    return good("would-deploy", `${reached} and would deploy ${commit.slice(0, 7)}${when}.`);
  }
  if ("duplicate" in would)
    return bad("would-be-duplicate", `${reached}, which knows it already. ${would.duplicate.detail}`);
  if ("ignore" in would)
    return bad("would-ignore", `${reached} and would be ignored. ${would.ignore.detail}`);
  const why = "fail" in would ? would.fail.detail : "Its answer is unknown here: update Hotpush.";
  return bad("would-fail", `${reached}, but its deployment would fail. ${why}`);
}

function judgeForeign({ status, headers }: HttpAnswer, { href, pathname }: URL, server: SentTo): Verdict {
  if (status >= 300 && status < 400 && headers.location === href)
    return bad(
      "redirected",
      `${href} redirects to itself (${status}): a proxy in front asks Caddy by plain http. Let it use https (Cloudflare: Full (strict)).`,
    );
  if (status >= 300 && status < 400)
    return bad(
      "redirected",
      `${href} redirects to ${headers.location ?? "another address"} (${status}). Git hosts do not follow: give them the final address, as its payload URL and here as --url.`,
    );
  const { start, logsOf } = commandsFor(server);
  const advice = [502, 503, 504].includes(status)
    ? `The service behind the proxy does not answer. Start it: ${start}. If it stops again, see: ${logsOf("front")}`
    : `Let the proxy pass ${pathname} on to Hotpush unchanged, or give the right address with --url.`;
  const by = headers.server ?? "something else";
  return bad("not-hotpush", `${href} was answered with ${status} by ${by}, not by Hotpush. ${advice}`);
}

function judgeSilence(error: NodeJS.ErrnoException, { href, hostname }: URL, server: SentTo): Verdict {
  const code = error.code ?? error.name;
  const { start, logsOf } = commandsFor(server);
  const advice = /CERT|SSL|TLS|EPROTO|VERIFY|ISSUER/.test(code)
    ? `Caddy gets a certificate by itself if the name leads here and ports 80 and 443 are open; it says why not in: ${logsOf("caddy")}.`
    : /^(?:ENOTFOUND|EAI_AGAIN)$/.test(code)
      ? `Make a DNS record of ${hostname} that leads to the server; a new one can take minutes to be known.`
      : /^E(?:TIMEDOUT|HOSTUNREACH|NETUNREACH)$/.test(code)
        ? `Let the firewall open that port, and compare the DNS record of ${hostname} with the server's address.`
        : `Start the service: ${start}; or give the right address with --url.`;
  return bad("unreachable", `${href} does not answer (${error.message || code}). ${advice}`);
}

/** What a person types when the service does not answer as it should. */
function commandsFor(server: SentTo): ReturnType<typeof serverCommands> {
  return server === null
    ? {
        start: "docker compose up -d, or systemctl start hotpush",
        logsOf: () => "docker compose logs, or journalctl -u hotpush",
      }
    : serverCommands(server);
}

function parsed(body: string): ServiceAnswer {
  return attempt(() => Object(JSON.parse(body)) as ServiceAnswer, {});
}

function good(outcome: string, text: string): Verdict {
  return { isGood: true, outcome, text: text.trim() };
}

function bad(outcome: string, text: string): Verdict {
  return { isGood: false, outcome, text: text.trim() };
}
