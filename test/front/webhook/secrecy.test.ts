import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deliver, githubDelivery, githubPush, sign, testSecret } from "../../harness/delivery.ts";
import { assertNowhere, contentsOf, printedBy } from "../../harness/secrecy.ts";
import { startService } from "../../harness/service.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

const previousSecret = "a-previous-secret-of-some-length-0123456789";

const nosyScript = `#!/bin/sh
env
tr '\\0' '\\n' < /proc/self/environ
echo "$0 $*"
env > "$DEPLOY_LOG"
`;

test("the secret is in no output, answer, log or database, whatever happens", async (t) => {
  // One secret comes by the environment and one by .env: they reach the service on different ways.
  const repoPath = temporaryDirectory(t);
  writeFileSync(join(repoPath, ".env"), `WEBHOOK_SECRET_PREVIOUS=${previousSecret}\n`);
  const service = await startService(t, { env: { LOG_LEVEL: "debug" }, script: nosyScript, repoPath });
  const push = githubPush();
  const deliveries = [
    push,
    githubPush({}, previousSecret),
    githubPush({}, "another secret than the right one"),
    githubDelivery("push", "no json"),
    githubDelivery("push", JSON.stringify({ ref: 1 })),
    githubDelivery("ping", "{}"),
    { ...push, headers: { ...push.headers, "x-hub-signature-256": `sha256=${sign(push.body)}0` } },
    { ...push, headers: { ...push.headers, "content-type": "text/plain" } },
  ];
  const answers: string[] = [];
  for (const delivery of deliveries) {
    const { headers, json } = await deliver(service.url, delivery);
    answers.push(JSON.stringify([...headers, json]));
  }
  await service.log.waitForEnding(2);
  await service.end("SIGTERM");
  const seen = [...printedBy(service), ...answers, ...contentsOf(service.statePath)];
  assert(
    seen.some((text) => text.includes("DEPLOY_COMMIT=")),
    "the script told its environment",
  );
  assertNowhere(seen, [testSecret, previousSecret]);
  for (const { body } of deliveries) assertNowhere(seen, [sign(body), sign(body, previousSecret)]);
});

test("a crash says what happened and not the secret", async (t) => {
  const crash = "process.on('SIGUSR2', () => { throw new Error('a fault of the test') })";
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(crash)}` };
  const service = await startService(t, { env });
  await deliver(service.url, githubPush());
  assert.equal(await service.end("SIGUSR2"), 70);
  const fatal = service.log.lines.find(({ event }) => event === "service.failed");
  assert.match(JSON.stringify(fatal), /a fault of the test/);
  assertNowhere([...printedBy(service), ...contentsOf(service.statePath)], [testSecret]);
});
