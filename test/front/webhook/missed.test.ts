import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusJson } from "../../../src/calls/shapes.ts";
import { ownAgent } from "../../../src/deployments/push.ts";
import { deliver, githubPush, withHeader } from "../../harness/delivery.ts";
import { hotpushJson } from "../../harness/hotpush.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startService } from "../../harness/service.ts";
import { until } from "../../harness/until.ts";

const wrongSecret = "another secret than the right one";

test("status has the last delivery that was refused and the last that was ignored, until a push counts", async (t) => {
  const service = await startService(t, { env: { REPOSITORY: "octo/app" } });
  const missedNow = async () => (await hotpushJson<StatusJson>(service, "status")).missed;
  assert.deepEqual(await missedNow(), []);
  assert.equal((await deliver(service.url, githubPush({}, wrongSecret))).status, 401);
  const moved = await deliver(service.url, githubPush({ repository: "octo/store" }));
  assert.deepEqual([moved.status, moved.json.reason], [200, "other_repository"]);
  await until("both are known", async () => (await missedNow()).length === 2);
  assert.deepEqual(
    (await missedNow()).map(({ kind, reason, host, repository }) => [kind, reason, host, repository]),
    [
      ["refused", "signature_invalid", "github", null],
      ["ignored", "other_repository", "github", "octo/store"],
    ],
  );
  assert.equal((await deliver(service.url, githubPush())).status, 202);
  assert.deepEqual(await missedNow(), []);
});

test("neither noise, nor what Hotpush sends itself, counts as a delivery of a git host", async (t) => {
  const { port, missed, used } = await startReceiver(t);
  const send = (delivery: ReturnType<typeof githubPush>) => deliver(`http://127.0.0.1:${port}`, delivery);
  const { "x-github-event": _, ...unnamed } = githubPush({}, wrongSecret).headers;
  for (const secret of [undefined, wrongSecret])
    await send(withHeader(githubPush({}, secret), "user-agent", ownAgent));
  await send({ headers: unnamed, body: "{}" });
  await send({ headers: { "content-type": "text/plain" }, body: "hello" });
  assert.deepEqual([missed, used], [[], []]);
  const { "x-hub-signature-256": __, ...unsigned } = githubPush().headers;
  await send({ headers: unsigned, body: "{}" });
  await send(withHeader(githubPush(), "content-type", "application/x-www-form-urlencoded"));
  await send(githubPush());
  assert.deepEqual(
    missed.map(({ kind, reason }) => [kind, reason]),
    [
      ["refused", "signature_missing"],
      ["refused", "unsupported_media_type"],
    ],
  );
  assert.equal(used.length, 1);
});
