import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { ReplyBody } from "../../harness/delivery.ts";
import { exchange } from "../../harness/raw-http.ts";
import { readDeployments } from "../../harness/records.ts";
import { type RunningService, startService } from "../../harness/service.ts";
import { until } from "../../harness/until.ts";
import { type Delivery, hostsWithDeliveries, loadDeliveries } from "./fixtures.ts";

/** What the fixtures of GitLab are stamped with: their signature holds for five minutes, by the service's clock. */
const signedAtSeconds = 1_788_336_944;

for (const host of hostsWithDeliveries()) {
  test(`${host}: each delivery, sent as it stands, is answered as it says, and what deploys is on disk`, async (t) => {
    const deliveries = loadDeliveries(host);
    const service = await startServiceFor(t, deliveries);
    for (const delivery of deliveries) {
      const { answer, deploys } = delivery.expect;
      const reply = await send(service, delivery);
      // A 202 of a busy machine names the delivery instead of the deployment.
      const isNamed = answer.status !== 202 || reply.deploys !== null;
      assert.deepEqual(reply, { name: delivery.name, ...answer, deploys: isNamed ? deploys : null });
    }
    const expected = deliveries.flatMap(({ expect: { deploys, reading } }) => {
      if (deploys === null || reading?.kind !== "push") return [];
      const { changes, repository, pusher } = reading;
      const { before } = changes.find(({ ref }) => ref === deploys.ref) ?? assert.fail();
      return { host, ...deploys, before, repository, pusher };
    });
    const recorded = await until("all that was accepted is recorded", () => {
      const rows = readDeployments(service.statePath);
      return rows.length >= expected.length && rows;
    });
    assert.partialDeepStrictEqual(recorded, expected);
    assert.equal(recorded.length, expected.length);
  });
}

async function startServiceFor(t: TestContext, deliveries: readonly Delivery[]): Promise<RunningService> {
  const [secret = "", ...others] = new Set(deliveries.map((delivery) => delivery.secret));
  assert.deepEqual(others, [], "the deliveries of a host share one secret");
  const isStamped = deliveries.some(({ headers }) => headers["webhook-timestamp"] !== undefined);
  return await startService(t, { env: { WEBHOOK_SECRET: secret, ...(isStamped ? clockEnv() : {}) } });
}

/** The service's wall clock goes on from when the fixtures were signed. */
function clockEnv(): Readonly<Record<string, string>> {
  const offsetMs = Math.round(signedAtSeconds * 1_000 - Date.now());
  const shift = `const now = Date.now; Date.now = () => now() + ${offsetMs};`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(shift)}` };
}

/** Writes the delivery to the letter; a client of HTTP would put its own headers into the place of some. */
async function send({ port }: RunningService, { name, headers, body }: Delivery) {
  const head = Object.entries(headers).map(([header, value]) => `${header}: ${value}\r\n`);
  const bytes = `POST /webhook HTTP/1.1\r\n${head.join("")}\r\n${body}`;
  const { replies } = await exchange(port, bytes, { replyCount: 1 });
  assert.equal(replies.length, 1, name);
  const { status, body: text } = replies[0] ?? assert.fail(name);
  const json = JSON.parse(text) as ReplyBody;
  const { ref, commit } = json.deployment ?? {};
  const says = json.code ?? json.reason ?? json.status;
  return { name, status, says, deploys: ref === undefined ? null : { ref, commit } };
}
