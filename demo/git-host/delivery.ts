import { createHmac, randomUUID } from "node:crypto";

export interface Reply {
  readonly status: number;
  /** The service's answer: the state of the deployment, or a problem (RFC 9457). */
  readonly body: {
    readonly status?: string | number;
    readonly title?: string;
    readonly detail?: string;
    readonly code?: string;
    readonly deployment?: { readonly id: number; readonly state: string };
  };
}

const timeoutMs = 10_000;

/**
 * Sends a push as GitHub does: the same headers, the same two signatures, the same time-out.
 * https://docs.github.com/en/webhooks/webhook-events-and-payloads#delivery-headers
 */
export async function deliver(url: string, secret: string, payload: object): Promise<Reply> {
  const body = JSON.stringify(payload);
  const sign = (algorithm: string) => createHmac(algorithm, secret).update(body).digest("hex");
  const response = await fetch(url, {
    method: "POST",
    headers: {
      accept: "*/*",
      "content-type": "application/json",
      "user-agent": "GitHub-Hookshot/demo",
      "x-github-delivery": randomUUID(),
      "x-github-event": "push",
      "x-github-hook-id": "1",
      "x-github-hook-installation-target-id": "1",
      "x-github-hook-installation-target-type": "repository",
      "x-hub-signature": `sha1=${sign("sha1")}`,
      "x-hub-signature-256": `sha256=${sign("sha256")}`,
    },
    body,
    signal: AbortSignal.timeout(timeoutMs),
  });
  return { status: response.status, body: (await response.json()) as Reply["body"] };
}
