import assert from "node:assert/strict";
import { after, test } from "node:test";
import { deliver, githubDelivery, githubPush, sign, withHeader } from "../../harness/delivery.ts";
import { assertProblem } from "../../harness/problems.ts";
import { exchange } from "../../harness/raw-http.ts";
import { recordedDeliveryCount } from "../../harness/records.ts";
import { startService } from "../../harness/service.ts";

const service = await startService({ after });

/** A request as it is put together; each fault spoils one thing of it. */
interface Draft {
  method: string;
  target: string;
  contentType: string;
  contentEncoding: string | null;
  declaredBytes: number | null;
  extraHeaderCount: number;
  event: string;
  signature: "right" | "wrong" | "malformed" | "missing";
  body: Buffer;
}

type Fault = readonly [name: string, status: number, says: string, spoil: (draft: Draft) => void];

const push = githubPush().body.toString();

/** In the order in which they are looked for. */
const faults: readonly Fault[] = [
  ["path", 404, "not_found", (draft) => (draft.target = "/hook")],
  ["method", 405, "method_not_allowed", (draft) => (draft.method = "PUT")],
  ["number of headers", 431, "headers_too_large", (draft) => (draft.extraHeaderCount = 95)],
  ["declared length", 413, "payload_too_large", (draft) => (draft.declaredBytes = 25 * 1024 ** 2 + 1)],
  ["content type", 415, "unsupported_media_type", (draft) => (draft.contentType = "text/plain")],
  ["content encoding", 415, "unsupported_encoding", (draft) => (draft.contentEncoding = "gzip")],
  ["no signature", 401, "signature_missing", (draft) => (draft.signature = "missing")],
  ["malformed signature", 401, "signature_invalid", (draft) => (draft.signature = "malformed")],
  ["wrong signature", 401, "signature_invalid", (draft) => (draft.signature = "wrong")],
  ["UTF-8", 400, "invalid_encoding", (draft) => (draft.body = Buffer.from([0xff, 0x7b]))],
  ["JSON", 400, "invalid_json", (draft) => (draft.body = Buffer.from("{"))],
  ["event", 200, "ignored", (draft) => (draft.event = "issues")],
  ["shape", 422, "invalid_payload", (draft) => (draft.body = Buffer.from('{"ref":"refs/heads/develop"}'))],
  ["ref", 200, "ignored", (draft) => (draft.body = Buffer.from(push.replace("heads/main", "heads/develop")))],
];

function compose(spoils: readonly Fault[]): Buffer {
  const draft: Draft = {
    method: "POST",
    target: "/webhook",
    contentType: "application/json",
    contentEncoding: null,
    declaredBytes: null,
    extraHeaderCount: 0,
    event: "push",
    signature: "right",
    body: Buffer.from(push),
  };
  // The earlier of two faults that spoil the same thing is the one that stays.
  for (const [, , , spoil] of [...spoils].reverse()) spoil(draft);
  const lines = [
    `${draft.method} ${draft.target} HTTP/1.1`,
    "Host: hotpush.test",
    `Content-Type: ${draft.contentType}`,
    `Content-Length: ${draft.declaredBytes ?? draft.body.length}`,
    `X-GitHub-Event: ${draft.event}`,
    ...(draft.contentEncoding ? [`Content-Encoding: ${draft.contentEncoding}`] : []),
    ...signatureLines(draft),
    ...Array.from({ length: draft.extraHeaderCount }, (_, index) => `X-Filler-${index}: y`),
  ];
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), draft.body]);
}

function signatureLines({ signature, body }: Draft): string[] {
  if (signature === "missing") return [];
  if (signature === "malformed") return ["X-Hub-Signature-256: sha256=abc"];
  const secret = signature === "wrong" ? "another secret than the right one" : undefined;
  return [`X-Hub-Signature-256: sha256=${sign(body, secret)}`];
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
  const wrong = "another secret than the right one";
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
