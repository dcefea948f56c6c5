import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isFinished } from "../../src/deployments/deployment.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { untilDeployment } from "../harness/records.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("200 deployments leave no descriptor, process or run directory behind", async (t) => {
  const script = "#!/bin/sh\necho '==> Deploy'\n[ $((DEPLOY_ID % 4)) != 0 ]\n";
  const service = await startService(t, { script });
  const pid = service.child.pid ?? 0;
  let before = 0;
  for (let id = 1; id <= 200; id += 1) {
    await deliver(service.url, githubPush());
    await untilDeployment(service.statePath, id, ({ state }) => isFinished(state));
    if (id === 20) before = readdirSync(`/proc/${pid}/fd`).length;
  }
  await until("the last is tidied up", () => readdirSync(join(service.statePath, "runs")).length === 0);
  await until("its process is reaped", () => zombiesOf(pid).length === 0);
  const after = readdirSync(`/proc/${pid}/fd`).length;
  t.diagnostic(`${before} descriptors after 20 deployments, ${after} after 200`);
  assert.ok(after <= before + 2, `${before} descriptors after 20 deployments, ${after} after 200`);
});

test("the logs of 50 deployments are kept, with the scripts' own logs", async (t) => {
  const temporaryPath = temporaryDirectory(t);
  const script = '#!/bin/sh\necho own >"$DEPLOY_LOG"\necho told\n';
  const service = await startService(t, { script, env: { TMPDIR: temporaryPath } });
  for (let id = 1; id <= 55; id += 1) {
    await deliver(service.url, githubPush());
    await untilDeployment(service.statePath, id, ({ state }) => isFinished(state));
  }
  const [ownDirectory = ""] = readdirSync(temporaryPath);
  for (const [directory, newest, oldest] of [
    [join(service.statePath, "logs"), "55.log", "6.log"],
    [join(temporaryPath, ownDirectory), "deploy-55.log", "deploy-6.log"],
  ] as const) {
    const namesOf = (pattern: RegExp) => readdirSync(directory).filter((name) => pattern.test(name));
    await until("the oldest are removed", () => namesOf(/\.log$/).length === 50);
    await until("and nothing of them is left", () => namesOf(/\b[1-5]\.log/).length === 0);
    assert.ok(readdirSync(directory).includes(newest));
    assert.ok(readdirSync(directory).includes(oldest));
  }
  assert.equal(statSync(join(temporaryPath, ownDirectory)).mode & 0o777, 0o700);
});

function zombiesOf(parent: number): readonly string[] {
  const { stdout } = spawnSync("ps", ["--ppid", String(parent), "-o", "stat="], { encoding: "utf8" });
  return stdout.split("\n").filter((state) => state.startsWith("Z"));
}
