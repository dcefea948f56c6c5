import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { untilDeployment } from "../harness/records.ts";
import { letGo, type RunningService, startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

/** Leaves a child behind that inherits its lock and its output, and writes the id of it to `child`. */
const scriptWithChild = `#!/bin/sh
sleep 300 &
echo $! >>child
echo up
while [ -e deploy.sh ] && [ ! -e go ]; do sleep 0.02; done
exit 3
`;

test("a child left in the background does not keep the next deployment from starting", async (t) => {
  const service = await startService(t, { script: scriptWithChild });
  letGo(service.repoPath);
  for (const id of [1, 2, 3]) {
    await deliver(service.url, githubPush());
    assert.equal((await service.log.waitForEnding(id)).exitCode, 3);
  }
  endLater(t, service);
  assert.ok(!service.log.lines.some(({ event }) => event === "deployment.not_started"));
  assert.equal(childrenOf(service).filter(isAlive).length, 3);
  await until(
    "nothing of the runs is open",
    () => !openFilesOf(service).some((file) => file.includes("/runs/")),
  );
});

test("a child left in the background does not keep an adopted script from ending", async (t) => {
  const first = await killWithChild(t);
  const second = await first.again();
  await second.log.waitFor(({ event }) => event === "deployment.adopted");
  letGo(first.repoPath);
  assert.equal((await second.log.waitForEnding(1)).exitCode, 3);
  await deliver(second.url, githubPush());
  assert.equal((await second.log.waitForEnding(2)).exitCode, 3);
  endLater(t, second);
});

test("nothing starts beside a script of an earlier service that still runs", async (t) => {
  const service = await startService(t);
  const holder = await holdLock(t, service, 998);
  await deliver(service.url, githubPush());
  const waiting = await service.log.waitFor(({ event }) => event === "deployment.not_started");
  assert.match(waiting.msg ?? "", /deployment 998/);
  holder.kill("SIGKILL");
  const { attempts } = await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
  assert.equal(attempts, 1);
});

test("a child of an ended script blocks nothing, though it holds the lock", async (t) => {
  const service = await startService(t);
  await holdLock(t, service, 998);
  writeFileSync(join(service.statePath, "runs/998/exit"), "0\n");
  await deliver(service.url, githubPush());
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
  assert.ok(!service.log.lines.some(({ event }) => event === "deployment.not_started"));
});

/** A process that holds the lock of a run which no deployment knows of. */
async function holdLock(t: TestContext, { statePath }: RunningService, id: number) {
  const directory = join(statePath, "runs", String(id));
  mkdirSync(directory, { recursive: true });
  const holder = spawn("sh", ["-c", 'exec 3>"$1/lock"; flock 3; echo held; exec sleep 300', "sh", directory]);
  t.after(() => holder.kill("SIGKILL"));
  await once(holder.stdout, "data");
  return holder;
}

function childrenOf({ repoPath }: RunningService): readonly number[] {
  return readFileSync(join(repoPath, "child"), "utf8").trim().split("\n").map(Number);
}

/** What the descriptors of the service stand for. */
function openFilesOf({ child }: RunningService): readonly string[] {
  const directory = `/proc/${child.pid}/fd`;
  return readdirSync(directory).map((fd) => {
    try {
      return readlinkSync(join(directory, fd));
    } catch {
      return "";
    }
  });
}

/** A service that was killed while its script ran, which has left a child behind by then. */
async function killWithChild(t: TestContext, script = scriptWithChild): Promise<RunningService> {
  const service = await startService(t, { script });
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ msg }) => msg === "up");
  endLater(t, service);
  await service.end("SIGKILL");
  return service;
}

function endLater(t: TestContext, service: RunningService): void {
  const pids = childrenOf(service);
  t.after(() => {
    for (const pid of pids.filter(isAlive)) process.kill(pid, "SIGKILL");
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
