import assert from "node:assert/strict";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import type { LogLine } from "../harness/processes.ts";
import { startService } from "../harness/service.ts";

const script = "#!/bin/sh\necho '==> Pull'\necho asking\nsleep 52\n";
const options = { script, env: { DEPLOY_SILENCE: "1s", SHUTDOWN_GRACE: "0" } };

test("a script that hangs is reported with its step and last line, also when it is adopted", async (t) => {
  const first = await startService(t, options);
  await deliver(first.url, githubPush());
  // Before it has printed its lines, it may be silent as well.
  const isSilent = ({ event, lastLine }: LogLine) => event === "deployment.silent" && lastLine === "asking";
  const { deployment, step, silentMs, level } = await first.log.waitFor(isSilent);
  assert.deepEqual([deployment, step, level], [1, "Pull", "warn"]);
  assert.ok(Number(silentMs) >= 1_000, `${silentMs} ms`);
  await first.log.waitFor((line) => isSilent(line) && Number(line.silentMs) >= 2_000);
  await first.end("SIGKILL");
  const second = await first.again();
  await second.log.waitFor(({ event }) => event === "deployment.silent");
  await second.end();
});
