import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { startService } from "../harness/service.ts";

test("nobody else can enter a state directory that the service makes", async (t) => {
  const { url, log, statePath } = await startService(t, { script: "#!/bin/sh\necho done\n" });
  await deliver(url, githubPush());
  await log.waitForEnding(1);
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
  assert.equal(modeOf(statePath), "700");
  // These keep their modes in a directory that was there before, such as a volume.
  assert.equal(modeOf(join(statePath, "runner.lock")), "600");
  assert.equal(modeOf(join(statePath, "logs", "1.log")), "600");
});
