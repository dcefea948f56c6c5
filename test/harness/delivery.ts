import { createHmac, randomBytes } from "node:crypto";
import { digestOf, readDeployments, readRecorded } from "./records.ts";
import { until } from "./until.ts";

export const testSecret = "7d1f0c5e9a3b48d2860e4f7a1b9c3d5e7f20418693ab5cd7ef1829304a5b6c7d";

export interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

export const noCommit = "0".repeat(40);

export function randomCommit(): string {
  return randomBytes(20).toString("hex");
}

/** A push as GitHub sends it, with the relevant fields. `mark` makes two pushes different deliveries; it is random by default. */
export function githubPush(fields: Readonly<Record<string, unknown>> = {}, secret = testSecret): Delivery {
  const { repository = "octo/app", mark = randomBytes(8).toString("hex"), ...rest } = fields;
  const payload = {
    ref: "refs/heads/main",
    before: noCommit,
    after: randomCommit(),
    created: false,
    deleted: false,
    forced: false,
    repository: { full_name: repository, pushed_at: 1_700_000_000 },
    pusher: { name: "octo" },
    head_commit: { message: mark },
    ...rest,
  };
  return githubDelivery("push", JSON.stringify(payload), secret);
}

/** Any body, signed as GitHub signs. */
export function githubDelivery(event: string, body: string | Buffer, secret = testSecret): Delivery {
  return {
    headers: {
      "content-type": "application/json",
      "user-agent": "GitHub-Hookshot/0000000",
      "x-github-event": event,
      "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
      "x-hub-signature-256": `sha256=${sign(body, secret)}`,
    },
    body,
  };
}

/** HMAC-SHA256 in hex. */
export function sign(body: string | Buffer, secret = testSecret): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}

/** The same delivery with one header added or replaced. */
export function withHeader({ headers, body }: Delivery, name: string, value: string): Delivery {
  return { headers: { ...headers, [name]: value }, body };
}

export interface WebhookReply {
  readonly status: number;
  readonly headers: Headers;
  // Tests read any member of a reply.
  readonly json: ReplyBody;
}

export interface ReplyBody
  extends Partial<Record<"reason" | "code" | "detail" | "title" | "type" | "instance" | "pointer", string>> {
  readonly status?: string | number;
  readonly delivery?: { readonly id: string; readonly ref: string; readonly commit: string };
  readonly deployment?: {
    readonly id: number;
    readonly ref: string;
    readonly commit: string;
    readonly state: string;
  };
}

const longestRecordingMs = 10_000;

/** The state directory of the service at an address, so that its record can be asked. */
export const statePaths = new Map<string, string>();

/**
 * Sends a delivery to a running service with a real HTTP client. If the machine is so busy that the answer cannot name the
 * deployment, the service's record does: the same delivery again would mean "try again" if the first has failed meanwhile.
 */
export async function deliver(url: string, delivery: Delivery, path = "/webhook"): Promise<WebhookReply> {
  const { headers, body } = delivery;
  const response = await fetch(`${url}${path}`, { method: "POST", headers, body: body as string });
  const json = (await response.json()) as ReplyBody;
  const statePath = statePaths.get(url);
  const reply = { status: response.status, headers: response.headers };
  if (json.delivery === undefined || statePath === undefined) return { ...reply, json };
  const idOfIt = () => readRecorded(statePath, ({ idOf }) => idOf(digestOf(delivery)));
  const recorded = () => readDeployments(statePath).find((one) => one.id === idOfIt());
  // A service that was killed, or has no disk, records nothing.
  const found = await until("the push is recorded", recorded, longestRecordingMs).catch(() => null);
  if (found === null) return { ...reply, json };
  const { id, ref, commit, state } = found;
  return { ...reply, json: { ...json, deployment: { id, ref, commit, state } } };
}
