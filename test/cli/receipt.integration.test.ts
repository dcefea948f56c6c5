import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, runCli } from "../harness/hotpush.ts";
import { makeToken, signIn, startPage } from "../harness/page.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const answers = { answers: 5, serverErrors: 0 };
const counts = { requests: 12_431, failed: 1, brokeOff: 0, left: 0 };
const report = {
  liveAtMs: 1_790_000_000_000,
  requests: [{ host: "shop.example.org", ...counts, before: answers, after: answers }],
  images: [{ service: "app", image: "shop-app", id: `sha256:${"a".repeat(64)}` }],
};

/** What a roll-out leaves for the service. */
const script = `#!/bin/sh
mkdir -p "$STATE_PATH/rollout"
echo '${JSON.stringify(report)}' >"$STATE_PATH/rollout/deployment-$DEPLOY_ID.json"
`;

const service = await startService(test, { script });
const directory = temporaryDirectory(test);
const target = { ...service, cwd: directory };
await deliver(service.url, githubPush());
await service.log.waitForEnding(1);
const receiptPath = join(directory, "receipt.json");
const text = (await hotpush(target, "receipt", "1")).stdout;
writeFileSync(receiptPath, text);
writeFileSync(join(directory, "hotpush.keys"), (await hotpush(target, "verify", "--show-key")).stdout);

test("a receipt is verified with the server's key, asked for or kept, in three lines", async () => {
  const asked = await hotpush(target, "verify", "receipt.json");
  assert.equal(asked.code, 0, asked.stderr);
  assert.equal(asked.stdout.trim().split("\n").length, 3);
  assert.match(asked.stdout, /1 of 12,431 requests failed/);
  const kept = await runCli(["verify", "receipt.json", "--key", "hotpush.keys"], { cwd: directory });
  assert.deepEqual([kept.code, kept.stdout], [0, asked.stdout]);
});

test("a changed receipt, another key, or no file at all is exit code 1", async () => {
  writeFileSync(join(directory, "changed.json"), text.replace('"payload":"', '"payload":"A'));
  const rows = [["changed.json"], ["missing.json"], ["receipt.json", "--key", "receipt.json"]];
  for (const args of rows) {
    const { code, stdout } = await hotpush(target, "verify", ...args);
    assert.deepEqual([code, stdout], [1, ""], args.join(" "));
  }
});

test("the commands of docs/receipts.md verify a receipt by hand, and refuse a changed one", () => {
  const page = readFileSync(new URL("../../docs/receipts.md", import.meta.url), "utf8");
  const [, commands = ""] = /<!-- by hand -->\n\n```sh\n([\s\S]*?)```/.exec(page) ?? [];
  const byHand = () =>
    execFileSync("sh", ["-euc", commands], { cwd: directory, stdio: ["ignore", "pipe", "ignore"] });
  assert.match(byHand().toString(), /^Good "hotpush-receipt" signature for hotpush /);
  const { payload, ...rest } = JSON.parse(text);
  const stated = Buffer.from(payload, "base64").toString().replace('"failed":1', '"failed":0');
  writeFileSync(receiptPath, JSON.stringify({ payload: Buffer.from(stated).toString("base64"), ...rest }));
  assert.throws(byHand);
  writeFileSync(receiptPath, text);
});

test("a viewer may read a receipt and the key, a stranger may not", async (t) => {
  const page = await startPage(t, service);
  const viewer = await makeToken(service, "viewer");
  const call = "GET /api/deployments/1/receipt";
  assert.equal((await page.ask(call, { token: viewer })).text, text.trim());
  assert.equal((await page.ask("GET /api/receipt-key", { token: viewer })).status, 200);
  for (const path of [call, "GET /api/receipt-key"]) {
    const { status, text: refusal } = await page.ask(path, { token: null });
    assert.deepEqual([status, refusal.includes("payload")], [401, false]);
  }
  const { text: screen } = await (await signIn(page, service)).get("/deployments/1");
  assert.ok(screen.includes('<a href="/api/deployments/1/receipt" download="receipt-1.json">'));
});
