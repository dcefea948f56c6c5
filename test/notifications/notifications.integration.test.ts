import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush } from "../harness/hotpush.ts";
import { type NotifyTargetServer, type ReceivedRequest, startTarget } from "../harness/listen.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const key = `whsec_${Buffer.from("a key of thirty-two bytes, 2026.").toString("base64")}`;
/** Fails unless the commit of the push is named as good. */
const script = `#!/bin/sh
echo "==> Build"
echo "the tests failed, see https://hooks.example.com"
[ "$2" = ${"a".repeat(40)} ] || exit 7
`;
const goodCommit = "a".repeat(40);

test("a failure and the recovery after it are sent to a webhook, signed and with a link", async (t) => {
  const target = await startTarget(t);
  const env = { ...notifying(t, target), PAGE_URL: "https://hotpush.example.com" };
  const service = await startService(t, { script, env });
  await deliver(service.url, githubPush());
  const [failed] = await target.waitFor(1);
  assert.partialDeepStrictEqual(failed?.json, {
    type: "deployment.failed",
    data: {
      deployment: { id: 1, project: "default", state: "failed", exitCode: 7 },
      isAfterFailure: false,
      step: "Build",
      link: "https://hotpush.example.com/deployments/1",
      lastLines: ["==> Build", "the tests failed, see https://hooks.example.com"],
    },
  });
  assertSigned(failed);
  await deliver(service.url, githubPush({ after: goodCommit }));
  const [, recovered] = await target.waitFor(2);
  assert.partialDeepStrictEqual(recovered?.json, {
    type: "deployment.succeeded",
    data: { isAfterFailure: true, lastLines: [] },
  });
});

test("targets that fail, hang or lie neither change nor delay a deployment", async (t) => {
  const hanging = await startTarget(t, () => {});
  const failing = await startTarget(t, (response) => void response.writeHead(500).end());
  const endless = await startTarget(t, (response) => pour(response.writeHead(200)));
  const elsewhere = await startTarget(t);
  const redirecting = await startTarget(t, (response) => {
    response.writeHead(307, { location: elsewhere.url }).end();
  });
  const breaking = await startTarget(t, (response) => void response.destroy());
  const good = await startTarget(t);
  const targets = [hanging, failing, endless, redirecting, breaking, good];
  const env = { ...notifying(t, ...targets), NOTIFY_ON: "all" };
  const service = await startService(t, { script, env });
  for (const id of [1, 2, 3]) {
    await deliver(service.url, githubPush(id === 2 ? { after: goodCommit } : {}));
    const { event } = await service.log.waitForEnding(id);
    assert.equal(event, id === 2 ? "deployment.succeeded" : "deployment.failed");
  }
  const sent = (await good.waitFor(6)).map(({ json }) => `${json.data.deployment.id} ${json.type}`);
  // A target whose answer comes late gets a message twice.
  const all = ["started", "failed", "started", "succeeded", "started", "failed"];
  const wanted = all.map((what, index) => `${Math.floor(index / 2) + 1} deployment.${what}`);
  assert.deepEqual([...new Set(sent)], wanted);
  for (const { requests } of [hanging, failing, redirecting, breaking]) {
    assert.deepEqual(new Set(requests.map(({ json }) => json.data.deployment.id)), new Set([1]));
  }
  assert.equal(elsewhere.requests.length, 0);
  assert.equal(await service.end(), 0);
});

test("a commit gets a status when the script starts, and its result at the end", async (t) => {
  const host = await startTarget(t, (response) => void response.writeHead(201).end("{}"));
  const path = join(temporaryDirectory(t), "token");
  writeFileSync(path, "a-token-of-gitea\n", { mode: 0o600 });
  const status = { COMMIT_STATUS_URL: `gitea+${host.url}/octo/app`, COMMIT_STATUS_TOKEN_FILE: path };
  const target = await startTarget(t);
  const env = { ...status, ...notifying(t, target) };
  const printing = script.replace("echo", "echo a-token-of-gitea; echo");
  const service = await startService(t, { script: printing, env });
  await deliver(service.url, githubPush({ after: goodCommit }));
  const requests = await host.waitFor(2);
  const shown = requests.map(({ json }) => `${json.state} ${json.context}`);
  assert.deepEqual(shown, ["pending hotpush/default", "success hotpush/default"]);
  assert.equal(requests[0]?.path, `/api/v1/repos/octo/app/statuses/${goodCommit}`);
  await service.log.waitForEnding(1);
  assert.ok(!JSON.stringify(service.log.lines).includes("a-token-of-gitea"), "the script printed the token");
  assert.equal(target.requests.length, 0, "NOTIFY_ON is failures");
});

test("hotpush notify --test shows for each target whether it took the message", async (t) => {
  const good = await startTarget(t);
  const bad = await startTarget(t, (response) => void response.writeHead(403).end());
  const env = notifying(t, good, bad);
  const service = await startService(t, { script, env });
  const { code, stdout } = await hotpush(service, "notify", "--test");
  assert.equal(code, 1);
  assert.match(
    stdout,
    /^ok {7}webhook at [\d.:]+ \(\w{4}\)\nfailed {3}webhook at [\d.:]+ \(\w{4}\): it answered 403\n$/,
  );
  assert.partialDeepStrictEqual(good.requests[0]?.json, { type: "test", data: { deployment: { id: 0 } } });
  assertSigned(good.requests[0]);
});

test("a report outlives its service, and no log or database has its target's URL", async (t) => {
  let isUp = false;
  const target = await startTarget(t, (response) => {
    response.writeHead(isUp ? 204 : 500).end(isUp ? "" : key);
  });
  const service = await startService(t, { script, env: notifying(t, target) });
  await deliver(service.url, githubPush());
  const line = await service.log.waitFor(({ event }) => event === "notifications.not_delivered");
  assert.match(line.msg ?? "", /webhook at 127\.0\.0\.1:\d+ \([0-9a-f]{4}\): it answered 500/);
  const texts = JSON.stringify(service.log.lines) + rowsOf(service.statePath);
  assert.doesNotMatch(texts, /hook-of-the-team|whsec_/);
  const first = target.requests[0]?.headers["webhook-id"];
  await service.end("SIGKILL");
  isUp = true;
  const count = target.requests.length;
  await service.again();
  const again = (await target.waitFor(count + 1)).at(-1);
  assert.deepEqual([again?.json.data.deployment.id, again?.headers["webhook-id"]], [1, first]);
});

function notifying(t: TestContext, ...targets: readonly NotifyTargetServer[]) {
  const path = join(temporaryDirectory(t), "notify");
  const lines = targets.map(({ url }) => `webhook ${url}/hook-of-the-team ${key}\n`);
  writeFileSync(path, lines.join(""), { mode: 0o600 });
  return { NOTIFY_FILE: path };
}

function assertSigned(request: ReceivedRequest | undefined): void {
  const { headers, text } = request as ReceivedRequest;
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${text}`;
  const bytes = Buffer.from(key.slice("whsec_".length), "base64");
  const expected = createHmac("sha256", bytes).update(signed).digest("base64");
  assert.equal(headers["webhook-signature"], `v1,${expected}`);
  assert.ok(Math.abs(Number(headers["webhook-timestamp"]) - Date.now() / 1_000) < 60);
}

/** Answers as long as anybody listens. */
function pour(response: ServerResponse): void {
  const chunk = Buffer.alloc(64 * 1024, "x");
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on("drain", more);
  more();
}

function rowsOf(statePath: string): string {
  const database = new DatabaseSync(join(statePath, "hotpush.db"), { readOnly: true });
  const rows = ["outbox", "subscribers", "deployments"].map((table) =>
    database.prepare(`SELECT * FROM ${table}`).all(),
  );
  database.close();
  return JSON.stringify(rows);
}
