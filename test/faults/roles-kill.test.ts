import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { deliver, githubPush } from "../harness/delivery.ts";
import { type Load, startLoad } from "../harness/load.ts";
import { type Machine, makeMachine, type RunningRole } from "../harness/machine.ts";
import type { LogLine } from "../harness/processes.ts";
import { injectFault, isGone, triedCalls } from "../harness/processes.ts";
import { digestOf, readRecorded, readSpool } from "../harness/records.ts";
import { makeRepository } from "../harness/repository.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const kills = Number(process.env.HOTPUSH_TEST_ROLE_KILLS ?? 200);
const clients = 16;
const names = ["shop", "blog", "api"];

/** As in kill.test.ts: one script in three outlives the process that started it. */
const exclusiveScript = `#!/bin/sh
mkdir at-work || echo "$DEPLOY_ID" >>overlaps
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
rmdir at-work
`;

interface Site {
  readonly machine: Machine;
  /** The checkouts, by project. */
  readonly checkouts: ReadonlyMap<string, string>;
  /** The commits of the branch, oldest first. */
  readonly commits: readonly string[];
}

/** Projects with a checkout each of a branch that has many commits. */
function makeSite(t: TestContext): Site {
  const remote = makeRepository(t);
  const commits = Array.from({ length: 20 }, (_, index) => remote.commit(`Change ${index}`));
  const machine = makeMachine(t);
  const checkouts = new Map(names.map((name) => [name, join(temporaryDirectory(t), name)]));
  for (const [name, path] of checkouts) {
    execFileSync("git", ["clone", "--quiet", remote.directory, path]);
    writeScript(join(path, "deploy.sh"), exclusiveScript);
    machine.addProject(name, path);
  }
  return { machine, checkouts, commits };
}

test(`${kills} kills of front and run under load lose nothing and let no scripts overlap`, async (t) => {
  const site = makeSite(t);
  const { machine, checkouts, commits } = site;
  const start = (role: "front" | "run") => machine.start(role, { MAX_RUNNING: "2" });
  beginLife(site, "first");
  let front = await start("front");
  let run = await start("run");
  const load = startLoad(clients, {
    paths: names.map((name) => `/webhook/${name}`),
    makePush: () => githubPush({ after: commits[Math.floor(Math.random() * commits.length)] ?? "" }),
  });
  const unseen = createUnseen(site, load);
  const lines = { front: [] as LogLine[], run: [] as LogLine[] };
  let frontKills = 0;

  async function killFront(): Promise<void> {
    frontKills += 1;
    await front.end("SIGKILL");
    lines.front.push(...front.log.lines);
    front = await start("front");
  }

  async function killRun(kill: number): Promise<void> {
    await run.end("SIGKILL");
    lines.run.push(...run.log.lines);
    if (kill % 3 === 0) for (const path of checkouts.values()) await killScript(path);
    run = await start("run");
    beginLife(site, `${kill + 1}`);
  }

  for (let kill = 0; kill < kills; kill += 1) {
    load.aim(originOf(front));
    // The moment of the kill is random; one life in four is long enough to start more scripts.
    await delay(60 + Math.random() * (kill % 4 === 0 ? 600 : 140));
    for (const role of [front, run]) assertRuns(role);
    await (Math.random() < 0.5 ? killFront() : killRun(kill));
    assert.deepEqual(unseen.findLost(), [], "accepted pushes that are on no disk");
    assert.deepEqual(linesOf(site, "overlaps"), [], "scripts that ran beside another one of their project");
  }
  beginLife(site, "last");
  await load.stop();
  for (const name of names) {
    const last = githubPush({ after: commits.at(-1) ?? "" });
    assert.equal((await deliver(originOf(front), last, `/webhook/${name}`)).status, 202);
    unseen.add(digestOf(last));
  }
  await until("everything accepted is recorded", () => unseen.countInSpool() === 0, 120_000);
  await until("everything recorded has ended", () => unfinished(site) === 0, 120_000);

  assert.deepEqual(unseen.findLost(), [], "accepted pushes that are on no disk");
  assert.equal(unseen.size(), 0, "accepted pushes that are not recorded");
  assert.deepEqual(linesOf(site, "overlaps"), [], "scripts that ran beside another one of their project");
  for (const path of checkouts.values()) assert.equal(fileLines(path, "deployed").at(-1), commits.at(-1));
  const starts = Map.groupBy(linesOf(site, "started"), (id) => id);
  const most = Math.max(...[...starts.values()].map(({ length }) => length));
  assert(most <= 3, `a script was started ${most} times`);
  lines.front.push(...front.log.lines);
  lines.run.push(...run.log.lines);
  assert.deepEqual(lines.front.filter(isError), [], "errors in the log of front");
  assert.deepEqual(lines.run.filter(isError), [], "errors in the log of run");
  t.diagnostic(
    `${frontKills} kills of front, ${kills - frontKills} of run: ${load.sent()} pushes sent, ` +
      `${load.accepted.size + load.stored.size} accepted, 0 lost, ${starts.size} scripts, 0 overlaps`,
  );
});

/** The calls that write: those of the spool are made by a thread of the pool, those of the database by the main one. */
const writes = "openat,write,pwrite64,fsync,fdatasync,rename,unlink,ftruncate";
/** More than a push takes of either half. */
const mostSteps = 60;

for (const [role, leastKills] of [
  ["front", 2],
  ["run", 6],
] as const)
  test(`a push is recorded once if ${role} is killed at any step of it`, needs("strace"), async (t) => {
    const site = makeSite(t);
    for (const path of site.checkouts.values()) writeScript(join(path, "deploy.sh"), "#!/bin/sh\n");
    // One thread does all work on files, so that its steps have an order.
    const start = (name: "front" | "run") => site.machine.start(name, { UV_THREADPOOL_SIZE: "1" });
    const running = { front: await start("front"), run: await start("run") };
    let pushes = 0;
    let kills = 0;
    for (const step of triedCalls(mostSteps)) {
      const { headers, body } = githubPush({ after: site.commits.at(-1) ?? "" });
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
  const site = makeSite(t);
  beginLife(site, "first");
  const path = site.checkouts.get("shop") ?? "";
  writeScript(join(path, "deploy.sh"), "#!/bin/sh\necho $$ >pid\necho x >>started\nsleep 60\n");
  const front = await site.machine.start("front");
  let run = await site.machine.start("run");
  await deliver(originOf(front), githubPush({ after: site.commits.at(-1) ?? "" }), "/webhook/shop");
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    await until(`start ${attempt}`, () => fileLines(path, "started").length === attempt);
    await run.end("SIGKILL");
    await killScript(path);
    run = await site.machine.start("run");
  }
  await until("it has failed", () => unfinished(site) === 0);
  assert.equal(fileLines(path, "started").length, 3);
  assert.deepEqual(front.log.lines.filter(isError), []);
});

/** Follows each accepted push until it is recorded. */
function createUnseen({ machine }: Site, load: Load) {
  const unseen = new Map<string, number | null>();
  let ids = 0;
  let stored = 0;

  function takeNew(): void {
    for (const digest of [...load.stored].slice(stored)) unseen.set(digest, null);
    for (const [digest, id] of [...load.accepted].slice(ids)) unseen.set(digest, id);
    [ids, stored] = [load.accepted.size, load.stored.size];
  }

  return {
    add: (digest: string) => void unseen.set(digest, null),
    size: () => unseen.size,
    countInSpool: () => readSpool(machine.spoolPath).size,
    /** Those that are neither in the inbox nor recorded, or recorded under another id than the answer said. */
    findLost(): readonly string[] {
      takeNew();
      // In this order: a push leaves the inbox when it is recorded.
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
  const pid = Number(fileLines(path, "pid")[0]);
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
const originOf = ({ port }: RunningRole) => `http://127.0.0.1:${port}`;

function linesOf({ checkouts }: Site, file: string): string[] {
  return [...checkouts.values()].flatMap((path) => fileLines(path, file));
}

function fileLines(path: string, file: string): string[] {
  try {
    return readFileSync(join(path, file), "utf8").trim().split("\n");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
