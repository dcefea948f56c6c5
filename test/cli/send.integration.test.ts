import assert from "node:assert/strict";
import { test } from "node:test";
import { readRecorded } from "../harness/recorded.ts";
import { startService } from "../harness/service.ts";
import { makeSetting } from "./send-setting.ts";

test("a push of the repository's head is accepted and deployed", async (t) => {
  const { repository, service, send } = await makeSetting(t);
  const { code, stdout, stderr } = await send();
  assert.equal(code, 0, stderr);
  const commit = repository.git("rev-parse", "HEAD");
  assert.match(
    stdout,
    /a signed push of \w{7} "Show the tide of tomorrow", the newest commit here, to refs\/heads\/main of octo\/shop\./,
  );
  assert.match(stdout, /Answered with 202, in [\d.]+ m?s\./);
  assert.match(stdout, new RegExp(`deployment 1 of ${commit.slice(0, 7)} is running`));
  await service.log.waitForEnding(1);
  assert.deepEqual(service.log.outputOf(1), ["==> Deploy", `deployed refs/heads/main ${commit}`]);
});

test("the head is deployed however often it is sent", async (t) => {
  const { service, send } = await makeSetting(t);
  for (const id of [1, 2]) {
    assert.match((await send("--dry-run")).stdout, /would deploy/);
    assert.match((await send()).stdout, new RegExp(`deployment ${id} of`));
    await service.log.waitForEnding(id);
  }
});

test("a dry run reports what would be deployed, and deploys nothing", async (t) => {
  const { repository, service, send } = await makeSetting(t);
  const { code, stdout, stderr } = await send("--dry-run");
  assert.equal(code, 0, stderr);
  const commit = repository.git("rev-parse", "--short=7", "HEAD");
  assert.match(
    stdout,
    new RegExp(`^A signed test push reached the service and would deploy ${commit}\\.$`, "m"),
  );
  assert.equal(readRecorded(service.statePath, ({ all }) => all("SELECT 1 FROM deployments")).length, 0);
});

test("a signing token of GitLab signs by Standard Webhooks", async (t) => {
  const secret = "whsec_JtiGRRxPo1ai3BhIeLgBd+WnzfVsXEtvexTStoIV8IQ=";
  const { service, send } = await makeSetting(t, { WEBHOOK_SECRET: secret });
  const { code, stderr } = await send();
  assert.equal(code, 0, stderr);
  const line = await service.log.waitFor(({ event }) => event === "delivery.accepted");
  assert.equal(line.host, "gitlab");
  await service.log.waitForEnding(1);
  assert.match((await send("--event", "ping")).stdout, /A signed ping reached the service\./);
});

test("a ping is answered", async (t) => {
  const { send } = await makeSetting(t);
  assert.match((await send("--event", "ping")).stdout, /A signed ping reached the service\./);
});

test("a file is sent unchanged; as a dry run only if it can be marked", async (t) => {
  const { repository, service, send } = await makeSetting(t);
  const payload = { ref: "refs/heads/main", before: "0".repeat(40), after: "a".repeat(40) };
  repository.write("push.json", JSON.stringify(payload));
  assert.match((await send("--file", "push.json", "--dry-run")).stdout, /would deploy aaaaaaa\./);
  assert.equal((await send("--file", "push.json")).code, 0);
  await service.log.waitForEnding(1);
  const again = await send("--file", "push.json", "--dry-run");
  assert.equal(again.code, 1);
  assert.match(again.stderr, /knows it already\. Already deployed\./);
  repository.write("push.json", "[]");
  assert.match((await send("--file", "push.json", "--dry-run")).stderr, /not a JSON object/);
  assert.match((await send("--file", "none.json")).stderr, /none\.json cannot be read \(ENOENT\)/);
});

test("a push that would be ignored or could not start ends with 1 and the reason", async (t) => {
  const { service, send } = await makeSetting(t, { REPOSITORY: "octo/other" });
  const ignored = await send("--dry-run");
  assert.equal(ignored.code, 1);
  assert.match(ignored.stderr, /would be ignored\. Only pushes of the repository that REPOSITORY names/);
  assert.equal((await send()).code, 1);
  const other = await startService(t, { script: null });
  const failing = await send("--dry-run", "--url", `${other.url}/webhook`);
  assert.equal(failing.code, 1);
  assert.match(failing.stderr, /its deployment would fail\. .*deploy\.sh does not exist\. Copy/);
  assert.equal(readRecorded(service.statePath, ({ all }) => all("SELECT 1 FROM deployments")).length, 0);
});

test("--json prints one object: what was sent, the answer, and what it means", async (t) => {
  const { repository, service, send } = await makeSetting(t);
  const { stdout, code } = await send("--dry-run", "--json");
  assert.equal(code, 0);
  const { durationMs, detail, answer, ...rest } = JSON.parse(stdout);
  assert.deepEqual(rest, {
    ok: true,
    outcome: "would-deploy",
    url: `${service.url}/webhook`,
    event: "push",
    dryRun: true,
    ref: "refs/heads/main",
    commit: repository.git("rev-parse", "HEAD"),
    repository: "octo/shop",
    status: 200,
  });
  assert.ok(durationMs >= 0);
  assert.equal(answer.status, "dry-run");
  assert.match(detail, /would deploy/);
});

test("a wrong option is a wrong command line, and no option takes a secret", async (t) => {
  const { send } = await makeSetting(t);
  assert.equal((await send("--event", "issue")).code, 2);
  assert.equal((await send("--wait", "soon")).code, 2);
  assert.equal((await send("--secret", "x")).code, 2);
});
