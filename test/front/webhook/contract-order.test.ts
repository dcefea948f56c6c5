import assert from "node:assert/strict";
import { after, test } from "node:test";
import { deliver, githubDelivery, githubPush, sign, withHeader } from "../../harness/delivery.ts";
import { assertProblem } from "../../harness/problems.ts";
import { exchange, onTheWire } from "../../harness/raw-http.ts";
import { recordedDeliveryCount } from "../../harness/records.ts";
import { startService } from "../../harness/service.ts";

const service = await startService({ after });

/** A request as it is put together; each fault spoils one thing of it. */
interface Draft {
  method: string;
  target: string;
  /** In the place of the true length. */
  framing?: readonly string[];
  extra: readonly string[];
  readonly headers: Record<string, string>;
  signature: (body: Buffer) => string | null;
  body: Buffer;
}

type Fault = readonly [name: string, status: number, says: string, spoil: (draft: Draft) => void];

const push = githubPush().body.toString();
const wrong = "another secret than the right one";

/** In the order in which they are looked for. */
const faults: readonly Fault[] = [
  ["path", 404, "not_found", (draft) => (draft.target = "/hook")],
  ["method", 405, "method_not_allowed", (draft) => (draft.method = "PUT")],
  ["number of headers", 431, "headers_too_large", (draft) => (draft.extra = Array(95).fill("X-Filler: y"))],
  [
    "length",
    413,
    "payload_too_large",
    (draft) => (draft.framing = [`Content-Length: ${25 * 1024 ** 2 + 1}`]),
  ],
  ["type", 415, "unsupported_media_type", ({ headers }) => (headers["content-type"] = "text/plain")],
  ["encoding", 415, "unsupported_encoding", ({ headers }) => (headers["content-encoding"] = "gzip")],
  ["no signature", 401, "signature_missing", (draft) => (draft.signature = () => null)],
  ["malformed signature", 401, "signature_invalid", (draft) => (draft.signature = () => "sha256=abc")],
  ["wrong signature", 401, "signature_invalid", (draft) => (draft.signature = (body) => signed(body, wrong))],
  ["UTF-8", 400, "invalid_encoding", (draft) => (draft.body = Buffer.from([0xff, 0x7b]))],
  ["JSON", 400, "invalid_json", (draft) => (draft.body = Buffer.from("{"))],
  ["event", 200, "ignored", ({ headers }) => (headers["x-github-event"] = "issues")],
  ["shape", 422, "invalid_payload", (draft) => (draft.body = Buffer.from('{"ref":"refs/heads/develop"}'))],
  ["ref", 200, "ignored", (draft) => (draft.body = Buffer.from(push.replace("heads/main", "heads/develop")))],
];

function compose(spoils: readonly Fault[]): Buffer {
  const headers = { "content-type": "application/json", "x-github-event": "push" };
  const body = Buffer.from(push);
  const draft: Draft = { method: "POST", target: "/webhook", extra: [], headers, signature: signed, body };
  // The earlier of two faults that spoil the same thing is the one that stays.
  for (const [, , , spoil] of [...spoils].reverse()) spoil(draft);
  const signature = draft.signature(draft.body);
  const sent = { ...headers, ...(signature && { "x-hub-signature-256": signature }) };
  return Buffer.from(onTheWire({ headers: sent, body: draft.body }, draft), "latin1");
}

function signed(body: Buffer, secret?: string): string {
  return `sha256=${sign(body, secret)}`;
}

test("each fault is reported before every later check, and with none the push is accepted", async () => {
  for (const [index, fault] of faults.entries()) {
    const [, status, says] = fault;
    for (const spoils of [[fault], faults.slice(index), [fault, ...faults.slice(-2)]]) {
      const { replies } = await exchange(service.port, compose(spoils), { replyCount: 1 });
      if (status === 200) assert.equal(JSON.parse(replies[0]?.body ?? "").status, says);
      else assertProblem(replies[0] as never, says as never, status === 422 ? ["pointer"] : []);
      const challenge = status === 401 ? 'HMAC-SHA256 realm="webhook"' : null;
      assert.deepEqual(
        [replies[0]?.status, replies[0]?.headers.get("www-authenticate")],
        [status, challenge],
      );
    }
  }
  assert.equal(recordedDeliveryCount(service.statePath), 0);
  const { replies } = await exchange(service.port, compose([]), { replyCount: 1 });
  assert.equal(replies[0]?.status, 202);
});

test("nothing of the body, the event or the repository shows before the signature is compared", async (t) => {
  const strict = await startService(t, { env: { REPOSITORY: "octo/app", DEPLOY_TIMEOUT: "1m" } });
  const deliveries = [
    githubPush({}, wrong),
    githubPush({ ref: "refs/heads/develop" }, wrong),
    githubPush({ repository: "evil/app" }, wrong),
    githubDelivery("ping", "{}", wrong),
    githubDelivery("nonsense", "no json", wrong),
    withHeader(githubPush(), "x-hub-signature-256", `sha256=${"0".repeat(63)}`),
  ];
  const answers = new Set<string>();
  for (const { url } of [service, strict])
    for (const delivery of deliveries) {
      const { status, headers, json } = await deliver(url, delivery);
      const fields = [...headers].filter(([name]) => name !== "date" && name !== "content-length");
      answers.add(JSON.stringify([status, fields, { ...json, instance: "" }]));
    }
  assert.equal(answers.size, 1, [...answers].join("\n"));
});
