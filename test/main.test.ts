import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { testSecret } from "./harness/delivery.ts";
import { spawnService, startService } from "./harness/service.ts";
import { temporaryDirectory } from "./harness/temporary.ts";

test("a wrong configuration ends the process with 78 and a line for each fault", async (t) => {
  const { exitCode, text } = await giveUp(t, { WEBHOOK_SECRET: "", WEBHOOK_PORT: "none" });
  assert.equal(exitCode, 78);
  assert.match(text, /hotpush: WEBHOOK_SECRET is empty; make one with: openssl rand -hex 32/);
  assert.match(text, /hotpush: WEBHOOK_PORT is "none"; expected a TCP port/);
});

test("a port that is taken ends the process with 78", async (t) => {
  const { port } = await startService(t);
  const { exitCode, text } = await giveUp(t, { WEBHOOK_PORT: String(port) });
  assert.equal(exitCode, 78);
  assert.match(text, new RegExp(`Port ${port} is taken by another program. Set WEBHOOK_PORT`));
});

test("a file .env in the working directory is read, and the environment wins over it", async (t) => {
  const repoPath = temporaryDirectory(t);
  writeFileSync(
    join(repoPath, ".env"),
    `WEBHOOK_SECRET=${testSecret}\nLOG_LEVEL=nonsense\nREPOSITORY=not one\n`,
  );
  const { exitCode, text } = await giveUp(t, { LOG_LEVEL: "debug" }, repoPath);
  assert.equal(exitCode, 78);
  assert.match(text, /REPOSITORY is "not one"/);
  assert.doesNotMatch(text, /LOG_LEVEL/);
});

async function giveUp(t: TestContext, env: Record<string, string>, repoPath = temporaryDirectory(t)) {
  const { child, log } = spawnService(t, { env, repoPath, statePath: join(temporaryDirectory(t), "state") });
  const [exitCode] = (await once(child, "close")) as [number | null];
  return { exitCode, text: log.otherText.join("\n") };
}
