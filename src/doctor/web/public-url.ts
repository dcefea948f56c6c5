import { type Check, type Fault, judge, problem, skipped } from "../check.ts";
import type { Scene } from "../scene.ts";
import { ping, type Reply } from "../service/ask-hotpush.ts";
import { isServiceThere } from "../service/in-compose.ts";

/** More than nginx lets through by default (1 MiB): a push of many commits is as large. */
const largeBytes = 2 * 1024 ** 2;

/** The way that a delivery takes: through DNS, the certificate and the proxy, to this very service. */
export const publicUrlCheck: Check = {
  id: "public-url",
  group: "Service",
  subject: "a delivery to the public URL reaches this service",
  async look(scene) {
    const { askedUrl, secret, settings } = scene;
    const publicUrl = askedUrl ?? webhookUrl(settings.env.WEBHOOK_URL ?? "");
    if (publicUrl === null)
      return skipped("say where your git host sends to: hotpush doctor --url https://…");
    if (secret === null) return skipped("there is no secret to sign with");
    if (askedUrl === null && !(await isServiceThere(scene))) return skipped("the service does not run");
    const fault = faultOf(await ping(publicUrl, secret), publicUrl, scene);
    if (fault !== null) return judge([fault], "");
    const large = await ping(publicUrl, secret, largeBytes);
    return judge(sizeFaults(large, publicUrl), `${publicUrl} has accepted a signed ping`);
  },
};

/** The address of the webhook for what a person writes: the site, or the whole address. */
export function webhookUrl(text: string): string | null {
  if (!URL.canParse(text) || !/^https?:/.test(text)) return null;
  const url = new URL(text);
  if (url.pathname === "/") url.pathname = "/webhook";
  return url.href;
}

function faultOf(reply: Reply, url: string, { port }: Scene): Fault | null {
  if (reply.kind === "none") return unreached(reply, url, port);
  if (reply.isPong) return null;
  if (reply.status >= 300 && reply.status < 400) {
    const text = `${url} sends on to ${reply.location}, and git hosts do not follow: the push is lost. In the form of the git host, write the address that it leads to:`;
    return problem(text, { change: `Payload URL: ${reply.location}` });
  }
  if (reply.code === "signature_invalid") {
    const text = `A Hotpush answers at ${url}, but it has another secret than the one that is set here: it is another one, or it was started before the secret was changed.`;
    return problem(text);
  }
  const text = `${url} was answered with status ${reply.status}, but not by Hotpush: the proxy does not send /webhook to port ${port}.`;
  return problem(text, proxyLine(port));
}

function unreached({ code, text }: Extract<Reply, { kind: "none" }>, url: string, port: number): Fault {
  const { hostname } = new URL(url);
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") {
    const change = `a DNS record of type A or AAAA for ${hostname}, with the address of this machine`;
    return problem(`The name ${hostname} is not known.`, { change });
  }
  if (/CERT|TLS|SSL|ISSUER|SIGNATURE/.test(code)) {
    const change = `reverse_proxy in a site block that is called ${hostname} (Caddy gets a certificate by itself)`;
    return problem(`The certificate at ${url} is not valid (${text}), so the git host will not send.`, {
      change,
    });
  }
  return problem(
    `Nothing answers at ${url} (${text}). Is the proxy up, and does the firewall let it through?`,
    {
      ...proxyLine(port),
    },
  );
}

function sizeFaults(reply: Reply, url: string): readonly Fault[] {
  if (reply.kind === "answer" && (reply.isPong || reply.code !== null)) return [];
  const what = reply.kind === "answer" ? `answers ${reply.status} to` : "breaks off";
  const text = `The proxy at ${url} ${what} a body of 2 MiB, so a large push is lost. Git hosts send up to 25 MB. In nginx:`;
  return [problem(text, { change: "client_max_body_size 25m;" })];
}

function proxyLine(port: number): { readonly change: string } {
  return { change: `Caddyfile: reverse_proxy /webhook 127.0.0.1:${port}` };
}
