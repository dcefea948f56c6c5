import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Delivery, deliver, githubPush, randomCommit } from "../harness/delivery.ts";
import { makeCheckout, makeMachine, pushTo, type Role, type RunningRole } from "../harness/machine.ts";
import { injectFault, isGone, type LogLine, triedCalls } from "../harness/processes.ts";
import { digestOf, readRecorded, readSpool } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import { type Senders, startSenders } from "../harness/senders.ts";
import { linesOf, temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const kills = Number(process.env.HOTPUSH_TEST_KILLS ?? 200);
const clients = 16;
/** How long what was accepted may take to be recorded and to end. */
const patienceMs = 120_000;
const names = ["shop", "blog", "api"];

/**
 * mkdir is atomic: it fails if another script is running. One script in three outlives the process that started it, and
 * runs on for a while beside the next one, however long that takes to start.
 */
const exclusiveScript = `mkdir at-work || echo "$DEPLOY_ID" >>overlaps
echo "$DEPLOY_ID" >>started
echo $$ >pid
life=$(cat life)
case $DEPLOY_ID in
*[147])
  while [ "$life" != last ] && [ "$(cat life)" = "$life" ]; do sleep 0.02; done
  sleep 0.3
  ;;
esac
echo "$2" >>deployed
rmdir at-work`;

type Site = ReturnType<typeof makeSite>;

/** The checkouts, by project, have no remote, so each push is deployed. */
function makeSite(t: TestContext, script = exclusiveScript) {
  const machine = makeMachine(t);
  const checkouts = new Map(names.map((name) => [name, makeCheckout(t, script)]));
  for (const [name, path] of checkouts) machine.addProject(name, path);
  const site = { machine, checkouts };
  beginLife(site, "first");
  return site;
}

for (const [what, roles] of [
  ["the service", ["all"]],
  ["front and run", ["front", "run"]],
] as const)
  test(`${kills} kills of ${what} under load lose nothing and let no scripts overlap`, async (t) => {
    const site = makeSite(t);
    const { machine, checkouts } = site;
    const start = (role: Role) => machine.start(role, { MAX_RUNNING: "2" });
    const running = new Map<Role, RunningRole>();
    for (const role of roles) running.set(role, await start(role));
    const load = startSenders(
      clients,
      names.map((name) => `/webhook/${name}`),
    );
    const unseen = createUnseen(site, load);
    const lines: LogLine[] = [];

    for (let kill = 0; kill < kills; kill += 1) {
      load.aim(originOf(running, roles[0]));
      // The moment of the kill is random; one life in four is long enough to start more scripts.
      await delay(60 + Math.random() * (kill % 4 === 0 ? 600 : 140));
      const role = roles[Math.floor(Math.random() * roles.length)] ?? roles[0];
      for (const one of running.values()) assertRuns(one);
      await running.get(role)?.end("SIGKILL");
      lines.push(...(running.get(role)?.log.lines ?? []));
      if (role === "run" && kill % 3 === 0) for (const path of checkouts.values()) await killScript(path);
      running.set(role, await start(role));
      if (role !== "front") beginLife(site, `${kill + 1}`);
      assert.deepEqual(unseen.findLost(), [], "accepted pushes were lost");
      assert.deepEqual(
        scriptLines(site, "overlaps"),
        [],
        "scripts that ran beside another one of their project",
      );
    }
    beginLife(site, "last");
    await load.stop();
    // What waits in the spool is recorded in any order.
    await until("the spool is empty", () => unseen.countInSpool() === 0, patienceMs);
    const newest = randomCommit();
    for (const name of names) {
      const last = githubPush({ after: newest });
      assert.equal((await deliver(originOf(running, roles[0]), last, `/webhook/${name}`)).status, 202);
      unseen.add(last);
    }
    await until("everything accepted is recorded", () => unseen.countInSpool() === 0, patienceMs);
    await until("everything recorded has ended", () => unfinished(site) === 0, patienceMs);

    assert.deepEqual(unseen.findLost(), [], "accepted pushes were lost");
    assert.equal(unseen.size(), 0, "accepted pushes were lost before they were recorded");
    assert.deepEqual(load.contradictions, [], "deliveries that were answered with two ids");
    assert.deepEqual(
      scriptLines(site, "overlaps"),
      [],
      "scripts that ran beside another one of their project",
    );
    for (const path of checkouts.values()) assert.equal(linesOf(join(path, "deployed")).at(-1), newest);
    const starts = Map.groupBy(scriptLines(site, "started"), (id) => id);
    const most = Math.max(...[...starts.values()].map(({ length }) => length));
    // What outlives its service is adopted, and started again only if it was killed with it.
    assert(most <= (roles.length === 1 ? 1 : 3), `a script was started ${most} times`);
    for (const { log } of running.values()) lines.push(...log.lines);
    assert.deepEqual(lines.filter(isError), [], "errors in the logs");
    t.diagnostic(
      `${load.sent()} pushes sent, ${load.accepted.size + load.stored.size} accepted, 0 lost, ` +
        `${starts.size} scripts, 0 overlaps`,
    );
  });

test("if a service is killed while its script is starting, no second one starts beside it", async (t) => {
  const site = makeSite(t, exclusiveScript.replace("*[147]", "*"));
  const env = { PATH: `${slowToLock(t)}:${process.env.PATH}` };
  const service = await site.machine.start("all", env);
  await pushTo(service, "shop");
  const lock = join(service.statePath, "projects/shop/runs/1/lock");
  await until("the script is starting", () => existsSync(lock));
  await service.end("SIGKILL");
  const next = await site.machine.start("all", env);
  await next.log.waitFor(({ event }) => seenByRecovery.has(event ?? ""));
  beginLife(site, "last");
  await until("the deployment has ended", () => unfinished(site) === 0);
  await next.end();
  assert.deepEqual(scriptLines(site, "overlaps"), []);
  assert.equal(scriptLines(site, "deployed").length, 1);
});

const seenByRecovery = new Set(["deployment.adopted", "deployment.interrupted"]);

/** A directory with a `flock` that is slow at the start of a run. */
function slowToLock(t: TestContext): string {
  const directory = temporaryDirectory(t);
  const isAsked = 'tr "\\0" " " <"/proc/$PPID/cmdline" | grep -q supervisor.sh';
  writeScript(join(directory, "flock"), `#!/bin/sh\n${isAsked} && sleep 1\nexec /usr/bin/flock "$@"\n`);
  return directory;
}

/** The calls that write: those of the spool are made by a thread of the pool, those of the database by the main one. */
const writes = "openat,write,pwrite64,fsync,fdatasync,rename,unlink,ftruncate";
/** More than a push takes of either half. */
const mostSteps = 60;

for (const [role, leastKills] of [
  ["front", 2],
  ["run", 6],
] as const)
  test(`a push is recorded once if ${role} is killed at any step of it`, needs("strace"), async (t) => {
    const site = makeSite(t, "true");
    // One thread does all work on files, so that its steps have an order.
    const start = (name: "front" | "run") => site.machine.start(name, { UV_THREADPOOL_SIZE: "1" });
    const running = { front: await start("front"), run: await start("run") };
    let pushes = 0;
    let kills = 0;
    for (const step of triedCalls(mostSteps)) {
      const { headers, body } = githubPush();
      // As a git host does: once.
      const send = () => fetch(running.front.urlOf("shop"), { method: "POST", headers, body: `${body}` });
      const { child } = running[role];
      const cease = await injectFault(t, child.pid ?? 0, `${writes}:signal=KILL:when=${step}`, "-f");
      const isAccepted = await send().then(
        ({ status }) => status === 202,
        () => false,
      );
      pushes += 1;
      await until("its end", () => hasEnded(child) || isTaken(site, pushes));
      // Past the last step it still runs.
      const isKilled = hasEnded(child);
      if (!isKilled) await running[role].end("SIGKILL");
      await cease();
      if (!isKilled) break;
      kills += 1;
      running[role] = await start(role);
      // What got no answer is sent again by a person.
      if (!isAccepted) assert.ok((await send()).ok, `step ${step}`);
      await until(`step ${step}: the push is recorded`, () => isTaken(site, pushes));
    }
    t.diagnostic(`${pushes} pushes, ${kills} kills of ${role}`);
    assert.ok(kills >= leastKills, `only ${kills} kills`);
  });

/** Whether there are so many deployments, and nothing waits in the spool. */
function isTaken({ machine }: Site, count: number): boolean {
  const deployments = readRecorded(machine.statePathOf("run"), ({ all }) => all("SELECT 1 FROM deployments"));
  assert.ok(deployments.length <= count, "a push was recorded twice");
  return deployments.length === count && readSpool(machine.spoolPath).size === 0;
}

const hasEnded = ({ exitCode, signalCode }: RunningRole["child"]) => exitCode !== null || signalCode !== null;

test("a script that dies with run each time is started three times", async (t) => {
  const site = makeSite(t, "echo $$ >pid\necho x >>started\nsleep 60");
  const path = site.checkouts.get("shop") ?? "";
  const front = await site.machine.start("front");
  let run = await site.machine.start("run");
  await pushTo(front, "shop");
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    await until(`start ${attempt}`, () => linesOf(join(path, "started")).length === attempt);
    await run.end("SIGKILL");
    await killScript(path);
    run = await site.machine.start("run");
  }
  await until("it has failed", () => unfinished(site) === 0);
  assert.equal(linesOf(join(path, "started")).length, 3);
  assert.deepEqual(front.log.lines.filter(isError), []);
});

/** Follows each accepted push until it is recorded. */
function createUnseen({ machine }: Site, load: Senders) {
  const unseen = new Map<string, number | null>();
  let ids = 0;
  let stored = 0;

  function takeNew(): void {
    for (const digest of [...load.stored].slice(stored)) unseen.set(digest, null);
    for (const [digest, id] of [...load.accepted].slice(ids)) unseen.set(digest, id);
    [ids, stored] = [load.accepted.size, load.stored.size];
  }

  return {
    add: (delivery: Delivery) => void unseen.set(digestOf(delivery), null),
    size: () => unseen.size,
    countInSpool: () => readSpool(machine.spoolPath).size,
    /** Those that are neither in the spool nor recorded, or recorded under another id than the answer said. */
    findLost(): readonly string[] {
      takeNew();
      // In this order: a push leaves the spool when it is recorded.
      const waiting = readSpool(machine.spoolPath);
      return readRecorded(machine.statePathOf("run"), ({ idOf }) =>
        [...unseen].flatMap(([digest, answered]) => {
          const id = idOf(digest);
          if (id !== null) unseen.delete(digest);
          if (answered !== null) return id === answered ? [] : [`${digest}: ${answered} is ${id}`];
          return id !== null || waiting.has(digest) ? [] : [digest];
        }),
      );
    },
  };
}

/** Kills the script that runs in a checkout, with all that belongs to it, while `run` is dead. */
async function killScript(path: string): Promise<void> {
  const pid = Number(linesOf(join(path, "pid"))[0]);
  if (!pid || isGone(pid)) return;
  const [, , group] = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  process.kill(-Number(group), "SIGKILL");
  await until("the script is gone", () => isGone(pid));
  rmSync(join(path, "at-work"), { recursive: true, force: true });
}

/** Signals to the scripts that outlive their process that the next one runs. */
function beginLife({ checkouts }: Site, name: string): void {
  for (const path of checkouts.values()) writeFileSync(join(path, "life"), name);
}

function unfinished({ machine }: Site): number {
  const sql = "SELECT 1 FROM deployments WHERE state IN ('queued', 'running', 'interrupted')";
  return readRecorded(machine.statePathOf("run"), ({ all }) => all(sql).length);
}

function assertRuns({ child, log }: RunningRole): void {
  const lastLines = log.lines.slice(-5).map((line) => JSON.stringify(line));
  assert.equal(child.exitCode, null, `it has ended by itself: ${lastLines.join("\n")}`);
}

const isError = ({ level }: LogLine) => level === "error" || level === "fatal";

function originOf(running: ReadonlyMap<Role, RunningRole>, role: Role): string {
  return `http://127.0.0.1:${running.get(role)?.port}`;
}

function scriptLines({ checkouts }: Site, file: string): string[] {
  return [...checkouts.values()].flatMap((path) => linesOf(join(path, file)));
}
