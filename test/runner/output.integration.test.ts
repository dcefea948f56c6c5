import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { logBytes, logPath } from "../../src/runner/log-file.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { memoryOf } from "../harness/processes.ts";
import { readLog, readSteps, untilDeployment } from "../harness/records.ts";
import { createTestRunner } from "../harness/runs.ts";
import { startService } from "../harness/service.ts";

const mebibyte = 1024 ** 2;

test("a script that floods its output blocks neither /health nor fills memory", async (t) => {
  const script = "#!/bin/sh\nyes &\nwhile [ ! -e go ] && [ -e deploy.sh ]; do sleep 0.05; done\nkill $!\n";
  const service = await startService(t, { script });
  await deliver(service.url, githubPush());
  const logged = () => logBytes(logPath(service.statePath, 1));
  for (let asked = 0; asked < 20 || logged() < 15 * mebibyte; asked += 1) {
    assert.equal((await fetch(`${service.url}/health`)).status, 200);
    const { residentBytes } = memoryOf(service.child.pid);
    assert.ok(residentBytes < 256 * mebibyte, `the service took ${residentBytes} bytes`);
  }
  writeFileSync(join(service.repoPath, "go"), "");
  // In the log of the service the line of its end may be among those that are dropped.
  const ended = await untilDeployment(service.statePath, 1, ({ state }) => state !== "running");
  assert.equal(ended.state, "succeeded");
  assert.ok(logged() <= 16 * mebibyte + 300_000);
});

test("lines are logged as they come, even an unfinished one, and steps in their order", async (t) => {
  const printed = "==> Pull\\n ==> no step\\n==>none\\n==> \\n==> Build the image \\n\\ntwo";
  const script = `#!/bin/sh\nprintf '${printed}'\nprintf ' and a half' >&2\n`;
  const service = await startService(t, { script });
  await deliver(service.url, githubPush());
  await service.log.waitForEnding(1);
  const lines = ["==> Pull", " ==> no step", "==>none", "==> ", "==> Build the image ", "", "two and a half"];
  assert.deepEqual(service.log.outputOf(1), lines);
  assert.equal(readLog(service.statePath, 1), `${lines.join("\n")}\n`);
  const logged = service.log.lines.filter(({ event }) => event === "deployment.step").map(({ step }) => step);
  assert.deepEqual(logged, ["Pull", "Build the image"]);
  assert.deepEqual(readSteps(service.statePath, 1), ["1: Pull", "1: Build the image"]);
});

test("line ends, colours and control characters are only in the log file", async (t) => {
  const runner = createTestRunner(t);
  await runner.run(
    "#!/bin/sh\nprintf 'one\\r\\n\\033[31mred\\033[0m\\n\\033]0;title\\007bell\\a\\n50%%\\r100%%\\n'\n",
  );
  assert.deepEqual(runner.lines, ["one", "red", "bell ", "50% 100%"]);
  assert.equal(runner.log(), "one\r\n\u001b[31mred\u001b[0m\n\u001b]0;title\u0007bell\u0007\n50%\r100%\n");
});

test("output at the very end is in the log", async (t) => {
  const runner = createTestRunner(t);
  for (let count = 0; count < 20; count += 1) {
    await runner.run("#!/bin/sh\nseq 2000\necho the end\n");
    assert.ok(runner.log().endsWith("2000\nthe end\n"));
  }
});
