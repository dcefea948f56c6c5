import { webhookUrl, webhookUrlOf } from "../../config/values.ts";
import type { Fix } from "../check.ts";
import { type CheckFinding, type Fault, okUnless, problem, skip } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { isServiceRunning } from "./own-service.ts";
import { type NoReply, pingWebhook, type WebhookReply } from "./probe-service.ts";

/** More than nginx accepts by default (1 MiB), and as large as a push of many commits. */
const largeBytes = 2 * 1024 ** 2;

/** Goes the way of a delivery: through DNS, the certificate and the proxy to this service. */
export async function checkPublicUrl(context: DoctorContext): Promise<CheckFinding> {
  const { givenUrl, secret, settings, project, machinePart } = context;
  const known = webhookUrl(givenUrl ?? settings.env.WEBHOOK_URL ?? "");
  // In the machine part, the site of a project passes /webhook on to its own path.
  const publicUrl = known && webhookUrlOf(known, machinePart === null ? project : null).href;
  if (publicUrl === null)
    return skip("name the URL that your git host sends to: hotpush doctor --url https://…");
  if (secret === null) return skip("there is no secret to sign with");
  if (givenUrl === null && !(await isServiceRunning(context))) return skip("the service does not run");
  const fault = faultOf(await pingWebhook(publicUrl, secret), publicUrl, context);
  if (fault !== null) return fault;
  const large = await pingWebhook(publicUrl, secret, largeBytes);
  return okUnless(sizeFaults(large, publicUrl), `${publicUrl} has accepted a signed ping`);
}

function faultOf(reply: WebhookReply, url: string, context: DoctorContext): Fault | null {
  const line = proxyLine(context);
  if (reply.kind === "none") return unreached(reply, url, line);
  if (reply.isPong) return null;
  if (reply.status >= 300 && reply.status < 400) {
    const text = `${url} redirects to ${reply.location}, and git hosts do not follow redirects: the push is lost. In the form of the git host, use the address that it redirects to:`;
    return problem(text, { change: `Payload URL: ${reply.location}` });
  }
  if (reply.code === "signature_invalid") {
    const text = `A Hotpush answers at ${url}, but its secret is not the one that is set here. Either it is another service, or the secret was changed after it started.`;
    return problem(text);
  }
  const text = `${url} answers with status ${reply.status}, but Hotpush did not send that: the proxy does not send /webhook to port ${context.port}.`;
  return problem(text, line);
}

function unreached({ code, text }: NoReply, url: string, line: Fix): Fault {
  const { hostname } = new URL(url);
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    const change = `a DNS record of type A or AAAA for ${hostname}, with the address of this machine`;
    return problem(`DNS does not know the name ${hostname}.`, { change });
  }
  if (/CERT|TLS|SSL|ISSUER|SIGNATURE/.test(code)) {
    const change = `reverse_proxy in a site block named ${hostname} (Caddy gets a certificate by itself)`;
    const invalid = `The certificate at ${url} is not valid (${text}), so the git host will not send.`;
    return problem(invalid, { change });
  }
  const nothing = `Nothing answers at ${url} (${text}). Does the proxy run, and does the firewall let the connection through?`;
  return problem(nothing, line);
}

function sizeFaults(reply: WebhookReply, url: string): readonly Fault[] {
  if (reply.kind === "answer" && (reply.isPong || reply.code !== null)) return [];
  const what = reply.kind === "answer" ? `answers ${reply.status} to` : "cuts off";
  const text = `The proxy at ${url} ${what} a body of 2 MiB, so a large push is lost. Git hosts send up to 25 MB. In nginx:`;
  return [problem(text, { change: "client_max_body_size 25m;" })];
}

function proxyLine({ port, project, machinePart }: DoctorContext): Fix {
  if (machinePart !== null)
    return { change: `${machinePart.files.sitesPath}/${project}.caddy: import deliveries ${project}` };
  const path = project === null ? "/webhook" : "/webhook/*";
  return { change: `Caddyfile: reverse_proxy ${path} 127.0.0.1:${port}` };
}
