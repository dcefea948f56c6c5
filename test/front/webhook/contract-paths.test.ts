import assert from "node:assert/strict";
import { METHODS } from "node:http";
import { after, test } from "node:test";
import { githubPush } from "../../harness/delivery.ts";
import { assertHeaders, assertProblem } from "../../harness/problems.ts";
import { exchange, onTheWire } from "../../harness/raw-http.ts";
import { recordedDeliveryCount } from "../../harness/records.ts";
import { startService } from "../../harness/service.ts";

const service = await startService({ after });

const otherTargets = [
  "/",
  "/%77ebhook",
  "//webhook",
  "/webhook/",
  "/a/../webhook",
  "/%2e/webhook",
  "/WEBHOOK",
  "/webhook%00",
  "/webhook%2F",
  "/webhook#fragment",
  "/webhook\\",
  "/%zz",
  "http://hotpush.test/webhook",
  "http://[/webhook",
  "/health/",
  "/%68ealth",
  "/__proto__",
];

test("nothing but its path to the letter is the webhook's, however well it is signed", async () => {
  for (const target of otherTargets) {
    const { replies } = await exchange(service.port, onTheWire(githubPush(), { target }), { replyCount: 1 });
    assertProblem(replies[0] as never, "not_found");
  }
  assert.equal(recordedDeliveryCount(service.statePath), 0);
});

const noBody = ["HEAD", "CONNECT"];

for (const [path, allowed] of [
  ["/webhook", "POST"],
  ["/health", "GET, HEAD"],
] as const) {
  test(`every method but ${allowed} is refused on ${path} with 405 and what is allowed`, async () => {
    const others = METHODS.filter((name) => !allowed.includes(name) && !noBody.includes(name));
    for (const method of others) {
      const wire = onTheWire(githubPush(), { method, target: path });
      const { replies } = await exchange(service.port, wire, { replyCount: 1 });
      assertProblem(replies[0] as never, "method_not_allowed");
      assert.equal(replies[0]?.headers.get("allow"), allowed, method);
    }
    assert.equal(recordedDeliveryCount(service.statePath), 0);
  });
}

test("HEAD gets the head of the answer and no body", async () => {
  const health = await fetch(`${service.url}/health`, { method: "HEAD" });
  assert.equal(health.status, 200);
  assert.equal(await health.text(), "");
  const webhook = await fetch(`${service.url}/webhook`, { method: "HEAD" });
  assert.equal(webhook.status, 405);
  assert.equal(webhook.headers.get("allow"), "POST");
  const other = await fetch(`${service.url}/other`, { method: "HEAD" });
  assert.equal(other.status, 404);
});

test("/health answers ok and nothing else, with a query as without", async () => {
  for (const target of ["/health", "/health?from=probe"]) {
    const response = await fetch(`${service.url}${target}`);
    assert.equal(response.status, 200);
    assert.deepEqual(await response.json(), { status: "ok" });
    assertHeaders(response, "application/json; charset=utf-8");
  }
});
