import type { Reply } from "./post.ts";

type Failure = Extract<Reply, { kind: "failure" }>;

/** Says why a delivery to `url` had no answer, and what to do. */
export function explainFailure({ code, message }: Failure, url: URL): string {
  const { hostname, host } = url;
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  switch (code) {
    case "ECONNREFUSED":
      return `Nothing listens at ${host} (connection refused). Start the service: docker compose up -d, or systemctl start hotpush; or say where it is with --url.`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `The name ${hostname} is not known. Make its DNS record, or say another address with --url.`;
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
