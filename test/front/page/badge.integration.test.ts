import assert from "node:assert/strict";
import { test } from "node:test";
import { requestFor, rows } from "../../../src/calls/table.ts";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { type RunningPage, startPage } from "../../harness/page.ts";
import { exchange } from "../../harness/raw-http.ts";
import { startService } from "../../harness/service.ts";

const answers = { answers: 5, serverErrors: 0 };
const site = { host: "a.example.org", requests: 1_204_331, failed: 0, brokeOff: 0, left: 0 };
const report = { liveAtMs: 1, requests: [{ ...site, before: answers, after: answers }] };
const script = `#!/bin/sh
mkdir -p "$STATE_PATH/rollout"
echo '${JSON.stringify(report)}' >"$STATE_PATH/rollout/deployment-$DEPLOY_ID.json"
`;
const env = { PAGE_BADGE: "1" };
const service = await startService(test, { script, env });
await deliver(service.url, githubPush());
await service.log.waitForEnding(1);

/** A path goes out as it is. */
async function send({ port }: RunningPage, path: string, method = "GET", host = `localhost:${port}`) {
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\n\r\n`;
  const { replies } = await exchange(port, head, { replyCount: 1 });
  return replies[0] ?? assert.fail(path);
}

test("a stranger sees the badge with the counts of the roll-outs", async (t) => {
  const page = await startPage(t, service, env);
  const { status, headers, body } = await send(page, "/badge/default.svg");
  assert.deepEqual([status, headers.get("content-type")], [200, "image/svg+xml"]);
  assert.ok(body.includes(">0 of 1,204,331 requests failed in 90 days</text>"), body);
  // Nothing from elsewhere, and nothing that runs.
  assert.ok(!/href|src=|url\(|<script|<style|<foreignObject|on\w+=/i.test(body));
});

test("a stranger gets nothing else, whatever the path, while the badge is public", async (t) => {
  const page = await startPage(t, service, env);
  const asked = rows.map(([, row]) => requestFor(row, { project: "default", id: 1 }));
  const targets: readonly (readonly [method: string, path: string])[] = [
    ...asked.flatMap(({ method, path }) => [[method, path] as const, [method, `/api${path}`] as const]),
    ["GET", "/deployments/1"],
    ...[
      "/badge/other.svg",
      "/badge/_.svg",
      "/badge/default.svg/",
      "/badge/%64efault.svg",
      "/badge/constructor.svg",
      "/badge/default.svg/../../api/projects",
      "/api/badge/default.svg",
      "/api/front/badge",
      "//badge/default.svg",
    ].map((path) => ["GET", path] as const),
    ["POST", "/badge/default.svg"],
  ];
  for (const [method, path] of targets) {
    const { status, body } = await send(page, path, method);
    const isHealth = path === "/health";
    assert.ok(isHealth ? status === 200 : status >= 400, `${method} ${path}: ${status}`);
    assert.ok(!body.includes("1,204,331") && !body.includes("octo"), `${method} ${path}`);
  }
  const elsewhere = await send(page, "/badge/default.svg", "GET", "evil.example.org");
  assert.deepEqual([elsewhere.status, elsewhere.body.includes("1,204,331")], [421, false]);
});

test("without the setting there is no badge, whichever half lacks it", async (t) => {
  const page = await startPage(t, service);
  assert.equal((await send(page, "/badge/default.svg")).status, 401);
  const closed = await startService(t, { script });
  const open = await startPage(t, closed, env);
  assert.equal((await send(open, "/badge/default.svg")).status, 404);
});
