import assert from "node:assert/strict";
import { hostname } from "node:os";
import { type TestContext, test } from "node:test";
import type { NotifyTarget } from "../../src/config/project.ts";
import { makeSecret } from "../../src/config/secret.ts";
import { findDeployment } from "../../src/deployments/store.ts";
import type { Message } from "../../src/notifications/message.ts";
import { sendToTarget } from "../../src/notifications/targets.ts";
import { startTarget } from "../harness/listen.ts";
import { commitOf, pushOf, record, run, temporaryStore } from "../harness/store.ts";

const commit = commitOf("one").slice(0, 7);
const title = `Hotpush on ${hostname()}: deployment 1 failed`;

test("Slack gets text in which nothing of a commit mentions or formats", async (t) => {
  const { request } = await sendTo(t, "slack", { subject: "<!channel> & more" });
  const { method, path, headers } = request;
  assert.deepEqual([method, path, headers["content-type"]], ["POST", "/hook", "application/json"]);
  assert.deepEqual(request.json, {
    text: `*${title}*\nmain at ${commit}: &lt;!channel&gt; &amp; more (Ada)\nIt ended with 7.\nStep: Build\n\`\`\`\nline one\n'''line two\n\`\`\`\n<https://page.example.com/deployments/1|Open the deployment>`,
    unfurl_links: false,
  });
});

test("Discord gets an embed that mentions nobody and is never too long", async (t) => {
  const { request } = await sendTo(t, "discord", { subject: "*all* @everyone [x](http://x)" });
  assert.deepEqual(request.json, {
    embeds: [
      {
        title,
        description: `main at ${commit}: \\*all\\* @everyone \\[x\\]\\(http://x\\) \\(Ada\\)\nIt ended with 7.\nStep: Build\n\`\`\`\nline one\n'''line two\n\`\`\``,
        color: 0xd1242f,
        url: "https://page.example.com/deployments/1",
      },
    ],
    allowed_mentions: { parse: [] },
  });
  const long = await sendTo(t, "discord", { subject: "s".repeat(9_000) }, ["l".repeat(9_000)]);
  assert.ok(long.request.json.embeds[0].description.length <= 4_096);
});

test("ntfy gets the topic, the title and the token at the root of its server", async (t) => {
  const { request } = await sendTo(t, "ntfy");
  assert.equal(request.path, "/");
  assert.equal(request.headers.authorization, "Bearer a-key-of-sixteen-bytes");
  assert.deepEqual(request.json, {
    topic: "hook",
    title,
    message: `main at ${commit}: Subject (Ada)\nIt ended with 7.\nStep: Build\nline one\n\`\`\`line two`,
    priority: 4,
    tags: ["x"],
    click: "https://page.example.com/deployments/1",
  });
  const long = await sendTo(t, "ntfy", { subject: "é".repeat(9_000) });
  assert.ok(Buffer.byteLength(long.request.json.message) <= 4_096);
});

test("Apprise gets a title, a body and the type failure", async (t) => {
  const { request } = await sendTo(t, "apprise");
  assert.equal(request.path, "/hook");
  assert.deepEqual(request.json, {
    title,
    body: `main at ${commit}: Subject (Ada)\nIt ended with 7.\nStep: Build\nline one\n\`\`\`line two\nhttps://page.example.com/deployments/1`,
    type: "failure",
    format: "text",
  });
});

for (const [what, kind, status, outcome] of [
  ["429 asks for a wait", "slack", 429, { kind: "failed", fault: "it answered 429", waitMs: 120_000 }],
  ["410 ends the attempts", "slack", 410, { kind: "refused", fault: "it answered 410" }],
  [
    "204 of Apprise, which has no configuration for the key, is no success",
    "apprise",
    204,
    { kind: "failed" },
  ],
] as const)
  test(`an answer of ${what}`, async (t) => {
    const answer = await sendTo(t, kind, {}, [], status, { "retry-after": "120" });
    assert.partialDeepStrictEqual(answer.outcome, outcome);
  });

async function sendTo(
  t: TestContext,
  kind: NotifyTarget["kind"],
  source: { readonly subject?: string } = {},
  lastLines: readonly string[] = ["line one", "```line two"],
  status = 200,
  headers: Readonly<Record<string, string>> = {},
) {
  const server = await startTarget(t, (response) => void response.writeHead(status, headers).end());
  const url = makeSecret(`${server.url}/hook`);
  const target = { kind, name: kind, url, key: makeSecret("a-key-of-sixteen-bytes") };
  const outcome = await sendToTarget(target, messageOf(t, source, lastLines), new AbortController().signal);
  return { request: server.requests[0] ?? assert.fail(), outcome };
}

function messageOf(t: TestContext, source: object, lastLines: readonly string[]): Message {
  const store = temporaryStore(t);
  record(store, pushOf({ commit: commitOf("one") }));
  const { id } = run(store, "failed");
  const found = findDeployment(store, id) ?? assert.fail();
  const problem = { code: "script_failed", detail: "It ended with 7." } as const;
  const deployment = { ...found, subject: "Subject", author: "Ada", problem, ...source };
  const report = { event: "ended", deployment, isAfterFailure: false } as const;
  return { report, step: "Build", lastLines, link: "https://page.example.com/deployments/1" };
}
