import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { countRequests } from "../../src/deployments/history.ts";
import {
  findReceipt,
  noteSigner,
  readPublicKey,
  receiptKey,
  recordStatement,
  signersLine,
  verifyReceipt,
} from "../../src/deployments/receipt.ts";
import { claimNext, findDeployment, transition } from "../../src/deployments/store.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import type { SiteRequests } from "../../src/site-requests.ts";
import { pushOf, record, temporaryStore } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const answers = { answers: 1, serverErrors: 0 };
const site: SiteRequests = {
  host: "shop.example.org",
  requests: 12_431,
  failed: 2,
  brokeOff: 3,
  left: 4,
  before: answers,
  after: answers,
};
const id = `sha256:${"a".repeat(64)}`;
const images = [
  { service: "app", image: "shop-app:1", id },
  { service: "worker", image: "127.0.0.1:5000/worker", id: "no digest" },
];
const guard = [{ service: "app", verdict: "0 of 80 requests went wrong" }];

/** Lets a deployment succeed whose roll-out reported something. */
function deployed(store: Store, sites = [site]): number {
  record(store, pushOf({ commit: "c".repeat(40) as never }));
  return store.transaction(() => {
    const claimed = claimNext(store) ?? assert.fail();
    noteSigner(store, claimed.id, "ann@example.org");
    const sql = "UPDATE deployments SET live_at_ms = 1790000000000, requests = ? WHERE id = ?";
    store.run(sql, JSON.stringify(sites), claimed.id);
    transition(store, claimed, "succeeded");
    recordStatement(store, findDeployment(store, claimed.id) ?? assert.fail(), { images, guard });
    return claimed.id;
  });
}

async function signed(t: TestContext) {
  const statePath = temporaryDirectory(t);
  const store = temporaryStore(t);
  const receipt = (await findReceipt(store, statePath, deployed(store))) ?? assert.fail();
  return { store, statePath, receipt, text: JSON.stringify(receipt), key: await receiptKey(statePath) };
}

test("a receipt states what went live, whose it is, and what was counted and judged", async (t) => {
  const { receipt, text, key } = await signed(t);
  const stated = JSON.parse(Buffer.from(receipt.payload, "base64").toString());
  assert.deepEqual(await verifyReceipt(`${text}\n`, key), stated);
  assert.deepEqual(stated.subject, [
    { name: "refs/heads/main", digest: { gitCommit: "c".repeat(40) } },
    { name: "app", digest: { sha256: "a".repeat(64) }, annotations: { image: "shop-app:1" } },
  ]);
  const { acceptedAt, startedAt, endedAt, hotpush, ...rest } = stated.predicate;
  assert.deepEqual(rest, {
    deployment: 1,
    project: "default",
    trigger: "push",
    ref: "refs/heads/main",
    commit: "c".repeat(40),
    signer: "ann@example.org",
    requests: { counted: 12_431, failed: 2, brokeOff: 3, left: 4 },
    guard,
    liveAt: "2026-09-21T14:13:20.000Z",
  });
  for (const moment of [acceptedAt, startedAt, endedAt]) assert.ok(Date.parse(moment) > 0);
  assert.match(hotpush, /^\d+\.\d+\.\d+/);
});

test("a receipt of which any byte was flipped is not verified", async (t) => {
  const { text, key } = await signed(t);
  const bytes = Buffer.from(`${text}\n`);
  const signature = text.indexOf('"sig"');
  const sampled = (at: number) =>
    at % 41 === 0 || at === bytes.length - 1 || (at > signature && at % 7 === 0);
  for (let at = 0; at < bytes.length; at += 1) {
    if (!sampled(at)) continue;
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 7));
    assert.equal(await verifyReceipt(flipped.toString(), key), null, `byte ${at}`);
  }
});

test("a receipt is verified only as it was written, and only with the key that signed it", async (t) => {
  const { receipt, text, key } = await signed(t);
  const other = await receiptKey(temporaryDirectory(t));
  assert.notEqual(other, key);
  const [own] = receipt.signatures;
  const odd = [
    "null",
    "{}",
    `${text} `,
    JSON.stringify(receipt, null, 2),
    JSON.stringify({ ...receipt, more: 1 }),
    JSON.stringify({ ...receipt, payloadType: "text/plain" }),
    JSON.stringify({ ...receipt, signatures: [] }),
    JSON.stringify({ ...receipt, signatures: [own, own] }),
    text.replace('"payload":"', '"payload":"\\u0065'),
  ];
  for (const one of odd) assert.equal(await verifyReceipt(one, key), null, one.slice(0, 60));
  assert.equal(await verifyReceipt(text, other), null);
});

test("a receipt is signed once, and stays as it was when the server gets another key", async (t) => {
  const { store, receipt } = await signed(t);
  assert.deepEqual(await findReceipt(store, temporaryDirectory(t), 1), receipt);
});

test("the key is made once, and nobody else may read it", async (t) => {
  const statePath = temporaryDirectory(t);
  const key = await receiptKey(statePath);
  const { mode } = statSync(join(statePath, "receipt-key"));
  assert.equal(mode & 0o777, 0o600);
  const { PATH } = process.env;
  t.after(() => Object.assign(process.env, { PATH }));
  process.env.PATH = "";
  assert.equal(await receiptKey(statePath), key, "and no program is started for it again");
  assert.equal(readPublicKey(signersLine(key)), key);
  assert.equal(readPublicKey("ssh-rsa AAAA"), null);
});

test("the requests since a time are those of this project's deployments that ended since then", (t) => {
  const store = temporaryStore(t);
  for (const sites of [[site, site], [site], []]) deployed(store, sites);
  store.transaction(() => store.run("UPDATE deployments SET finished_at_ms = id * 1000"));
  const counts = (sinceMs: number, of = store) => ({ ...countRequests(of, sinceMs) });
  assert.deepEqual(counts(0), { requests: 3 * 12_431, failed: 6 });
  assert.deepEqual(counts(1_001), { requests: 12_431, failed: 2 });
  assert.deepEqual(counts(3_000), { requests: 0, failed: 0 });
  assert.deepEqual(counts(0, store.of("other")), { requests: 0, failed: 0 });
});
