import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { operatorSocketPath } from "../src/config/server.ts";
import { launcher } from "../test/harness/hotpush.ts";
import { freePort } from "../test/harness/listen.ts";
import { makeMachine, type Role } from "../test/harness/machine.ts";
import { makeProject } from "../test/harness/repository.ts";
import { type Scope, temporaryDirectory, writeScript } from "../test/harness/temporary.ts";
import {
  acceptAll,
  bodyBytes,
  longScript,
  perSecond,
  pushesToMain,
  type SentPush,
  syncDurations,
} from "./accept.ts";
import { type Pace, perRound } from "./pace.ts";
import { launch, type Receiver } from "./peers/receiver.ts";
import { pushOfSize } from "./push.ts";
import { mb, ms, type Section, type Target, times } from "./report.ts";
import { withScope } from "./scope.ts";
import { send } from "./send.ts";
import { median, percentile } from "./statistics.ts";
import { isInstalled, wrk } from "./tools.ts";

const many = 50;
const floodConnections = 50;

interface ProjectsMachine {
  readonly names: readonly string[];
  readonly pagePort: number;
  readonly add: (name: string, repoPath: string) => void;
  readonly start: (role: Role) => Promise<Receiver>;
}

/** The cost of many projects, in one process and in the two that share the work. */
export async function measureProjects(pace: Pace): Promise<Section> {
  const seconds = pace({ quick: 2, full: 10 });
  const rounds = pace({ quick: 1, full: 3 });
  const settleMs = pace({ quick: 2_000, full: 10_000 });
  // The first start of each role fills the cache of compiled code.
  for (const role of ["all", "front", "run"] as const) await startOnce({ role, count: many });
  const accepting = await measureAcceptance(seconds, pace({ quick: 50, full: 500 }));
  const memory = await perRound([1, many], rounds, (count) => idleBytes(count, settleMs));
  const one = medianOf(memory, 1);
  const all = medianOf(memory, many);
  const starts = await perRound(startCases, rounds * 2, startOnce);
  return {
    title: "Many projects",
    text: `${many} projects, each with a checkout and a secret of its own. Accepting: ${perSecond} pushes to main a second for ${seconds} s, to one project after the other, while a deployment runs; as above, but beside \`fdatasync\` before and after each case on the same disk. For each answer \`front\` syncs a file and its directory, and \`run\` its record, also in one process. Memory: ${settleMs / 1_000} s after the start, \`front\` with a page, medians of ${rounds} in turns; what the two share, such as Node's own program, is counted once (PSS). Start: from starting \`bin/hotpush\` to the first answer on /health, or, for \`run\`, to its control socket; medians of ${rounds * 2}.`,
    tables: [
      { columns: ["Accepting", "p50", "p99", "longest", "`fdatasync`, p99"], rows: accepting.rows },
      {
        columns: ["Memory", "front", "run", "together"],
        rows: [one, all].map(({ count, front, run, together }) => [
          count === 1 ? "1 project" : `${count} projects`,
          mb(front),
          mb(run),
          mb(together),
        ]),
      },
      {
        columns: ["Start", "1 project", `${many} projects`],
        rows: roles.map((role) => [
          commandOf(role),
          ...[1, many].map((count) => ms(startOf(starts, role, count))),
        ]),
      },
    ],
    targets: [
      ...accepting.targets,
      {
        what: `Idle memory of \`front\` and \`run\` with ${many} projects`,
        aim: "at most 110 MB",
        measured: mb(all.together),
        isMet: all.together <= 110e6,
      },
      {
        what: "The same, against one project",
        aim: "at most 1.10 ×",
        measured: times(all.together, one.together),
        isMet: all.together <= 1.1 * one.together,
      },
      ...roles.map((role) => startTarget(role, startOf(starts, role, many))),
    ],
  };
}

async function makeProjects(scope: Scope, count: number): Promise<ProjectsMachine> {
  const machine = makeMachine(scope);
  const pagePort = await freePort();
  const names = Array.from({ length: count }, (_, index) => `project-${index}`);
  const add = (name: string, repoPath: string) =>
    machine.addProject(name, repoPath, { CATCH_UP_INTERVAL: "5m" });
  for (const name of names) {
    const repoPath = temporaryDirectory(scope);
    writeScript(join(repoPath, "deploy.sh"), "#!/bin/sh\n");
    add(name, repoPath);
  }
  return {
    names,
    pagePort,
    add,
    async start(role) {
      const port = role === "run" ? null : await freePort();
      const statePath = machine.statePathOf(role);
      return await launch(scope, {
        name: commandOf(role),
        command: [launcher, ...(role === "all" ? [] : [role])],
        port,
        hookPath: "/webhook/",
        readyPath: role === "run" ? operatorSocketPath(statePath) : "/health",
        cwd: temporaryDirectory(scope),
        env: {
          WEBHOOK_PORT: String(port ?? 0),
          WEBHOOK_HOST: "127.0.0.1",
          STATE_PATH: statePath,
          PROJECTS_PATH: machine.projectsPath,
          SECRETS_PATH: machine.secretsPath,
          SPOOL_PATH: machine.spoolPath,
          SHUTDOWN_GRACE: "0",
          ...(role === "front"
            ? { PAGE_URL: `http://localhost:${pagePort}`, PAGE_PORT: String(pagePort) }
            : {}),
          FRONT_SOCKET: join(machine.statePathOf(role === "all" ? "all" : "run"), "front.sock"),
        },
      });
    },
  };
}

async function measureAcceptance(seconds: number, syncs: number) {
  const single = await acceptWith(["all"], seconds, syncs);
  const two = await acceptWith(["run", "front"], seconds, syncs);
  const rows = [rowOf("one process", single), rowOf("`front` and `run`", two)];
  const targets = [targetOf("one process", single), targetOf("`front` and `run`", two)];
  if (!isInstalled(wrk)) return { rows, targets };
  const flooded = await acceptWith(["run", "front"], seconds, syncs, floodPage);
  const [calmMs, floodedMs] = [two, flooded].map(({ latenciesMs }) => percentile(latenciesMs, 99));
  return {
    rows: [...rows, rowOf(`the same, while ${floodConnections} connections flood the page`, flooded)],
    targets: [
      ...targets,
      {
        what: "p99 while the page is flooded, against the p99 before",
        aim: "at most 2 ×",
        measured: times(floodedMs ?? Number.NaN, calmMs ?? Number.NaN),
        isMet: (floodedMs ?? Number.NaN) <= 2 * (calmMs ?? Number.NaN),
      },
    ],
  };
}

interface Accepted {
  readonly latenciesMs: readonly number[];
  readonly syncsMs: readonly number[];
}

/** @param started the last one is the one with the port */
async function acceptWith(
  started: readonly Role[],
  seconds: number,
  syncs: number,
  meanwhile: (pagePort: number) => () => void = () => () => {},
): Promise<Accepted> {
  return await withScope(async (scope) => {
    const machine = await makeProjects(scope, many);
    const disk = temporaryDirectory(scope);
    const { repoPath, commit, script } = makeProject(scope);
    script(longScript);
    machine.add("busy", repoPath);
    const receivers: Receiver[] = [];
    for (const role of started) receivers.push(await machine.start(role));
    const hookUrl = receivers.at(-1)?.hookUrl ?? "";
    // It runs all the time, and every other project waits for its turn.
    await send(`${hookUrl}busy`, pushOfSize(bodyBytes, { ref: "refs/heads/main", after: commit() }));
    const before = syncDurations(disk, syncs);
    const end = meanwhile(machine.pagePort);
    const latenciesMs = await acceptAll(pushesToAll(machine, hookUrl, perSecond * (seconds + 1)), 202);
    end();
    return { latenciesMs, syncsMs: [...before, ...syncDurations(disk, syncs)] };
  });
}

/** Anonymous requests, each as soon as the last is answered. @returns what ends it */
function floodPage(pagePort: number): () => void {
  const args = ["-t1", `-c${floodConnections}`, "-d600s", `http://localhost:${pagePort}/`];
  const flooding = spawn("wrk", args, { stdio: "ignore" });
  return () => flooding.kill();
}

/** Each project gets the commits of its own branch, one after another. */
function pushesToAll({ names }: ProjectsMachine, hookUrl: string, length: number): readonly SentPush[] {
  const branches = names.map(() => pushesToMain(Math.ceil(length / names.length)).values());
  return Array.from({ length }, (_, index) => {
    const push = branches[index % names.length]?.next().value;
    if (push === undefined) throw new Error("there are too few pushes");
    return { url: `${hookUrl}${names[index % names.length]}`, push };
  });
}

function rowOf(name: string, { latenciesMs, syncsMs }: Accepted): readonly string[] {
  const p99Ms = [latenciesMs, syncsMs].map((values) => ms(percentile(values, 99)));
  const [accepted = "", sync = ""] = p99Ms;
  return [name, ms(median(latenciesMs)), accepted, ms(Math.max(...latenciesMs)), sync];
}

function targetOf(name: string, { latenciesMs, syncsMs }: Accepted): Target {
  const beyondMs = percentile(latenciesMs, 99) - percentile(syncsMs, 99);
  const what = `Accepting for ${many} projects, ${name}: p99 beyond that of the disk's sync`;
  return { what, aim: "under 10 ms", measured: ms(beyondMs), isMet: beyondMs < 10 };
}

interface IdleMemory {
  readonly front: number;
  readonly run: number;
}

async function idleBytes(count: number, settleMs: number): Promise<IdleMemory> {
  return await withScope(async (scope) => {
    const { start } = await makeProjects(scope, count);
    const front = await start("front");
    const run = await start("run");
    await delay(settleMs);
    return { front: proportionalBytesOf(front.pid), run: proportionalBytesOf(run.pid) };
  });
}

function medianOf(all: ReadonlyMap<number, readonly IdleMemory[]>, count: number) {
  const measured = all.get(count) ?? [];
  const [front, run] = (["front", "run"] as const).map((role) => median(measured.map((one) => one[role])));
  const together = median(measured.map((one) => one.front + one.run));
  return { count, front: front ?? Number.NaN, run: run ?? Number.NaN, together };
}

interface StartCase {
  readonly role: Role;
  readonly count: number;
}

const roles = ["all", "front", "run"] as const;
const startCases: readonly StartCase[] = roles.flatMap((role) => [1, many].map((count) => ({ role, count })));

async function startOnce({ role, count }: StartCase): Promise<number> {
  return await withScope(async (scope) => (await (await makeProjects(scope, count)).start(role)).startMs);
}

function startOf(all: ReadonlyMap<StartCase, readonly number[]>, role: Role, count: number): number {
  const found = startCases.find((one) => one.role === role && one.count === count);
  return median((found && all.get(found)) ?? []);
}

function startTarget(role: Role, startMs: number): Target {
  const what = `\`${commandOf(role)}\` with ${many} projects: start`;
  return { what, aim: "under 300 ms", measured: ms(startMs), isMet: startMs < 300 };
}

function commandOf(role: Role): string {
  return role === "all" ? "hotpush" : `hotpush ${role}`;
}

/** What a process takes of the machine's memory: of what it shares with others, only its part. */
function proportionalBytesOf(pid: number | undefined): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1]) * 1024;
}
