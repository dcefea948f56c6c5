import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { callRun } from "../../src/calls/client.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { isGone } from "../harness/processes.ts";
import { readLog, untilDeployment } from "../harness/records.ts";
import { letGo, type RunningService, startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

/** It goes on when it is asked to end, until there is a file `go`, in which its exit code is. */
const stubbornScript = `#!/bin/sh
trap 'echo asked' TERM
echo "$DEPLOY_ID" >>runs
echo up
while [ -e deploy.sh ] && [ ! -e go ]; do sleep 0.02; done
echo after
exit "$(cat go)"
`;
/** Leaves a child behind that inherits its lock and its output, and writes the id of it to `child`. */
const scriptWithChild = stubbornScript.replace("echo up", "sleep 300 &\necho $! >>child\necho up");

test("a script that outlives its service is adopted and stays alone", async (t) => {
  const first = await killDeploying(t);
  const second = await first.again();
  await untilAdopted(second);
  assert.equal((await deliver(second.url, githubPush())).json.deployment?.state, "queued");
  letGo(first.repoPath, 3);
  const { exitCode, attempts } = await untilDeployment(second.statePath, 1, isOver);
  assert.deepEqual([exitCode, attempts], [3, 1]);
  await untilDeployment(second.statePath, 2, isOver);
  assert.equal(runsIn(second), "1\n2\n");
  assert.equal(readLog(second.statePath, 1), "up\nafter\n");
});

for (const [what, exitCode, damage] of [
  ["", 0, () => {}],
  [", its output pipe lost,", 3, (path: string) => rmSync(join(path, "output"))],
] as const)
  test(`a script that ended while no service ran${what} is recorded as it ended`, async (t) => {
    const first = await killDeploying(t);
    letGo(first.repoPath, exitCode);
    await until("the script has ended", () => existsSync(join(first.statePath, "runs/1/exit")));
    damage(join(first.statePath, "runs/1"));
    const second = await first.again();
    const recorded = await untilDeployment(second.statePath, 1, isOver);
    assert.deepEqual([recorded.exitCode, recorded.attempts], [exitCode, 1]);
    await deliver(second.url, githubPush());
    await untilDeployment(second.statePath, 2, isOver);
    assert.equal(runsIn(second), "1\n2\n");
    if (exitCode === 0) assert.equal(readLog(second.statePath, 1), "up\nafter\n");
    else assert.match(recorded.problem?.detail ?? "", /The rest of the output is lost/);
  });

test("a script that was killed with its service runs again, whatever is left of its run", async (t) => {
  const service = await killDeploying(t);
  process.kill(-supervisorOf(service), "SIGKILL");
  letGo(service.repoPath);
  rmSync(join(service.statePath, "runs"), { recursive: true });
  const next = await service.again();
  assert.equal((await untilDeployment(next.statePath, 1, isOver)).state, "succeeded");
  assert.equal(runsIn(next), "1\n1\n");
});

test("an adopted script still has its time-out", async (t) => {
  const script = stubbornScript.replace("trap", "#");
  const first = await killDeploying(t, { script, env: { DEPLOY_TIMEOUT: "3s" } });
  const pid = supervisorOf(first);
  const second = await first.again();
  assert.equal((await second.log.waitForEnding(1)).event, "deployment.timed_out");
  assert.throws(() => process.kill(-pid, 0), { code: "ESRCH" });
});

for (const [what, end] of [
  ["dies with its service", (first) => process.kill(-supervisorOf(first), "SIGKILL")],
  ["outlives its service", () => {}],
] satisfies [string, (first: RunningService) => unknown][])
  test(`a cancelled script that ${what} is ended, and not run again`, async (t) => {
    const first = await killDeploying(t, {
      async before({ statePath, log }) {
        await callRun(statePath, "cancel", { id: "latest" });
        await log.waitFor(({ msg }) => msg === "asked");
      },
    });
    end(first);
    const next = await first.again();
    if (what === "outlives its service") await untilAdopted(next);
    letGo(first.repoPath);
    const { attempts } = await untilDeployment(next.statePath, 1, ({ state }) => state === "cancelled");
    assert.equal(attempts, 1);
    assert.equal(runsIn(next), "1\n");
  });

test("a child left in the background keeps no script from its end, adopted or not, and no next one", async (t) => {
  const first = await killDeploying(t, { script: scriptWithChild });
  const service = await first.again();
  await untilAdopted(service);
  letGo(first.repoPath, 3);
  for (const id of [1, 2, 3]) {
    if (id > 1) await deliver(service.url, githubPush());
    assert.equal((await service.log.waitForEnding(id)).exitCode, 3);
  }
  endChildren(t, service);
  assert.ok(!service.log.lines.some(({ event }) => event === "deployment.waits"));
  assert.ok(childrenOf(service).every((pid) => !isGone(pid)));
  const isOpen = () => openFilesOf(service).some((file) => file.includes("/runs/"));
  await until("nothing of the runs is open", () => !isOpen());
});

test("nothing starts beside a script that still runs, though no deployment knows of it", async (t) => {
  const service = await startService(t);
  const directory = join(service.statePath, "runs/998");
  mkdirSync(directory, { recursive: true });
  const holder = spawn("sh", ["-c", 'exec 3>"$1/lock"; flock 3; echo held; exec sleep 300', "sh", directory]);
  t.after(() => holder.kill("SIGKILL"));
  await once(holder.stdout, "data");
  await deliver(service.url, githubPush());
  const waiting = await service.log.waitFor(({ event }) => event === "deployment.waits");
  assert.match(waiting.msg ?? "", /deployment 998/);
  holder.kill("SIGKILL");
  const { attempts } = await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
  assert.equal(attempts, 1);
});

interface Killing {
  readonly script?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What happens before the kill. */
  readonly before?: (service: RunningService) => Promise<void>;
}

/** A service that was killed while its script went on. */
async function killDeploying(t: TestContext, killing: Killing = {}): Promise<RunningService> {
  const { script = stubbornScript, env = {}, before } = killing;
  const service = await startService(t, { script, env });
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ msg }) => msg === "up");
  if (script === scriptWithChild) endChildren(t, service);
  await before?.(service);
  await service.end("SIGKILL");
  return service;
}

function untilAdopted({ log }: RunningService) {
  return log.waitFor(({ event }) => event === "deployment.adopted");
}

function isOver({ state }: { readonly state: string }): boolean {
  return state === "succeeded" || state === "failed";
}

/** The process group of the script of deployment 1. */
function supervisorOf({ statePath }: RunningService): number {
  return Number(readFileSync(join(statePath, "runs/1/pid"), "utf8"));
}

function runsIn({ repoPath }: RunningService): string {
  return readFileSync(join(repoPath, "runs"), "utf8");
}

function childrenOf({ repoPath }: RunningService): readonly number[] {
  return readFileSync(join(repoPath, "child"), "utf8").trim().split("\n").map(Number);
}

function endChildren(t: TestContext, service: RunningService): void {
  const pids = childrenOf(service);
  t.after(() => {
    for (const pid of pids.filter((one) => !isGone(one))) process.kill(pid, "SIGKILL");
  });
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
