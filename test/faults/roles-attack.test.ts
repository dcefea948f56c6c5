import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Socket } from "node:net";
import { dirname, join } from "node:path";
import process from "node:process";
import { type TestContext, test } from "node:test";
import { callService } from "../../src/control/client.ts";
import type { Prey } from "../harness/attacker.ts";
import { deliver, githubPush, randomCommit } from "../harness/delivery.ts";
import { listenAt } from "../harness/listen.ts";
import { becomeNobody, nobody } from "../harness/nobody.ts";
import { readRecorded } from "../harness/recorded.ts";
import { makeRepository } from "../harness/repository.ts";
import { type Machine, makeMachine, type RunningRole } from "../harness/roles.ts";
import { pushOf } from "../harness/store.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const floodOfPushes = Number(process.env.HOTPUSH_TEST_OFFERS ?? 3_000);
const token = "tok-4711-only-for-deploy";
/** How soon a command is answered, whatever is offered. */
const mostAnswerMs = 10_000;

interface Site {
  readonly machine: Machine;
  readonly run: RunningRole;
  readonly checkouts: Readonly<Record<"shop" | "blog", string>>;
  /** Commits of the branch, and one of another branch, which the checkouts have too. */
  readonly commits: Readonly<Record<"old" | "head" | "side", string>>;
  /** What the scripts of a project were started with. */
  readonly ran: (project: "shop" | "blog") => readonly string[];
}

const script = `#!/bin/sh
echo "$*" >>ran
echo "token: $TOKEN"
git fetch --quiet origin && git reset --quiet --hard "$2"
`;

/** Two projects with a real branch each; `run` runs, and nothing is in the place of `receive`. */
async function startSite(t: TestContext): Promise<Site> {
  const remote = makeRepository(t);
  const old = remote.commit("Old");
  remote.git("checkout", "--quiet", "-b", "side");
  const side = remote.commit("Not in main");
  remote.git("checkout", "--quiet", "main");
  const head = remote.commit("Head");
  const machine = makeMachine(t);
  const parent = temporaryDirectory(t);
  for (const path of [dirname(machine.projectsPath), parent]) chmodSync(path, 0o755);
  const checkouts = { shop: join(parent, "shop"), blog: join(parent, "blog") };
  for (const [name, path] of Object.entries(checkouts)) {
    execFileSync("git", ["clone", "--quiet", remote.directory, path]);
    writeScript(join(path, "deploy.sh"), script);
    machine.addProject(name, path, { DEPLOY_ENV: "DEPLOY_RETRY_PAUSES" });
    writeFileSync(join(machine.secretsPath, `${name}.env`), `TOKEN=${token}\n`, { mode: 0o600 });
  }
  chmodSync(machine.secretsPath, 0o700);
  mkdirSync(machine.statePathOf("receive"));
  const run = await machine.start("run", { DEPLOY_RETRY_PAUSES: "0.1", MAX_RUNNING: "2" });
  await until("commands are answered", () => existsSync(join(run.statePath, "control.sock")));
  const ran = (project: "shop" | "blog") => linesOf(join(checkouts[project], "ran"));
  return { machine, run, checkouts, commits: { old, head, side }, ran };
}

test("the rights of receive reach no secret, record, checkout, setting, command or process of run", {
  skip: process.getuid?.() !== 0 && "needs root, to start a process as another user",
}, async (t) => {
  const { machine, run, checkouts, commits, ran } = await startSite(t);
  const ownPath = machine.statePathOf("receive");
  chownSync(ownPath, nobody, nobody);
  const receive = await machine.start("receive", {}, becomeNobody);
  await deliver(originOf(receive), githubPush({ after: commits.head }), "/webhook/shop");
  await until("receive works with these rights", () => ran("shop").length === 1);
  await receive.end();
  const { projectsPath, secretsPath } = machine;
  const prey: Prey = {
    ...{ ownPath, projectsPath, secretsPath },
    ...{ statePath: run.statePath, checkout: checkouts.shop, runPid: run.child.pid ?? 0 },
  };
  const attacker = [process.execPath, join(import.meta.dirname, "../harness/attacker.ts")];
  const [program = "", ...args] = [...becomeNobody, ...attacker, JSON.stringify(prey)];
  const results = JSON.parse(execFileSync(program, args, { encoding: "utf8" })) as Record<string, string>;
  const rights = Object.entries(results).filter(([, result]) => !["EACCES", "EPERM"].includes(result));
  assert.deepEqual(rights, [
    ["own: read the settings", "done"],
    ["own: write in its directory", "done"],
  ]);
  assert(Object.keys(results).length > 15);
});

test("whatever is offered, only the head of the branch is deployed, by one script, as a push", async (t) => {
  const site = await startSite(t);
  const { machine, commits, ran, run } = site;
  const inbox = await startLiar(t, machine.inboxSocket);
  const offer = async (fields: object, more: object = {}) => {
    const count = recorded(site).length;
    inbox.offer({ project: "shop", push: { ...pushOf(), ...fields }, ...more });
    await until("it is recorded", () => recorded(site).length > count);
    await until("it has ended", () => recorded(site).every(({ state }) => isOver(state)));
  };

  await offer({ commit: commits.side });
  await offer({ commit: randomCommit() });
  assert.deepEqual(ran("shop"), [], "a commit that is not in the branch starts nothing");
  assert.deepEqual([...new Set(recorded(site).map(({ state }) => state))], ["failed"]);

  const rollback = { trigger: "rollback", id: 1, state: "succeeded", requestedBy: "root" };
  const replayed = pushOf({ commit: commits.head as never });
  await offer(replayed);
  await offer({ commit: commits.old, ...rollback }, rollback);
  await offer({ commit: commits.old, before: commits.head });
  const count = recorded(site).length;
  inbox.offer({ project: "shop", push: replayed });
  inbox.offer({ project: "shop", push: { ...pushOf(), ref: "refs/heads/main;touch owned" } });
  inbox.offer({ project: "shop", push: { ...pushOf(), ref: "refs/heads/side" } });
  inbox.offer({ project: "shop", push: { ...pushOf(), commit: "$(touch owned)" } });
  inbox.offer({ project: "shop", push: { ...pushOf(), commit: "--upload-pack=touch owned" } });
  inbox.offer({ project: "../shop", push: pushOf() });
  inbox.offer({ project: "__proto__", push: pushOf() });
  inbox.offer({ project: "missing", push: pushOf() });
  await until("all are taken", () => inbox.isEmpty());
  assert.equal(recorded(site).length, count, "a replayed push and no push make no deployment");

  assert.deepEqual([...new Set(ran("shop"))], [`refs/heads/main ${commits.head}`]);
  assert.deepEqual(ran("blog"), []);
  assert.deepEqual([...new Set(recorded(site).map(({ trigger }) => trigger))], ["push"]);
  assert(inbox.heard().includes("accepted"), "run has answered");
  assert(!inbox.heard().includes(token), "no answer has a secret");
  assert(
    run.log.lines.some(({ msg }) => msg === "token: ***"),
    "the script had the secret",
  );
});

const endless = (text: string) => (socket: Socket) => {
  const pour = () => {
    while (socket.write(text));
    socket.once("drain", pour);
  };
  pour();
};
const dripping = (first: string, more: string) => (socket: Socket) => {
  socket.write(first);
  const timer = setInterval(() => socket.write(more), 20);
  socket.on("close", () => clearInterval(timer));
};
const saying = (text: string) => (socket: Socket) => void socket.end(text);
const ok = "HTTP/1.1 200 OK\r\n";
const withBody = (body: string) =>
  saying(`${ok}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`);

const answers: Readonly<Record<string, (socket: Socket) => void>> = {
  "no answer": () => {},
  "a closed connection": (socket) => void socket.destroy(),
  "no HTTP": saying("\0\u0001\u0002 hello\r\n\r\n"),
  "half a response": saying(`${ok}content-length: 100\r\n\r\n{"inbox"`),
  "more than its length says": saying(`${ok}content-length: 2\r\n\r\n{}${"x".repeat(100_000)}`),
  "two lengths": saying(`${ok}content-length: 2\r\ncontent-length: 3\r\n\r\n{} `),
  "an endless header": endless(`${ok}x: ${"y".repeat(10_000)}`),
  "an endless body": endless(`${ok}\r\n${"[".repeat(60_000)}`),
  "endless chunks": endless(`${ok}transfer-encoding: chunked\r\n\r\n1;${"x".repeat(1_000)}\r\n[\r\n`),
  "a chunk of 16 EB": saying(`${ok}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n[`),
  "endless interim responses": endless("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(500)),
  "another protocol": saying("HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
  "a header that drips": dripping(ok, "x: y\r\n"),
  "a body that drips": dripping(`${ok}content-length: 100000\r\n\r\n`, "["),
  "a redirect": saying("HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"),
  "deep JSON": withBody("[".repeat(100_000)),
  "a deep value": withBody(`{"inbox":${"[".repeat(50_000)}${"]".repeat(50_000)}}`),
  "100,000 small values": withBody(`[${"{},".repeat(80_000)}{}]`),
  "a list instead of an object": withBody("[]"),
  "a prototype": withBody(`{"__proto__":{"inbox":"${"1".repeat(36)}"},"constructor":1}`),
};

test("no answer on the socket crashes run, or keeps it from its commands and its work", async (t) => {
  const site = await startSite(t);
  const { machine, run, commits, ran } = site;
  for (const [what, answer] of Object.entries(answers)) {
    let connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      socket.on("error", () => {});
      socket.once("data", () => answer(socket));
    });
    rmSync(machine.inboxSocket, { force: true });
    const scope = createScope(t);
    await listenAt(scope, server, machine.inboxSocket);
    await until(`run meets ${what}`, () => connections > 0);
    await assertAnswers(site, what);
    scope.end();
  }
  for (const [what, put] of Object.entries(places(site))) {
    rmSync(machine.inboxSocket, { force: true, recursive: true });
    put(machine.inboxSocket);
    await assertAnswers(site, what);
  }
  rmSync(machine.inboxSocket, { force: true, recursive: true });
  const receive = await machine.start("receive");
  for (const name of ["shop", "blog"] as const) {
    await deliver(originOf(receive), githubPush({ after: commits.head }), `/webhook/${name}`);
    await until(`${name} is deployed`, () => ran(name).length === 1, 40_000);
  }
  const lines = run.log.lines.filter(({ event }) => event?.startsWith("inbox."));
  assert(lines.length < 60, `${lines.length} lines about the inbox`);
});

/** What can be put in the place of the socket. */
function places({ run, checkouts }: Site): Readonly<Record<string, (path: string) => void>> {
  return {
    "a regular file": (path) => writeFileSync(path, "x"),
    "a FIFO": (path) => void execFileSync("mkfifo", [path]),
    "a directory": (path) => mkdirSync(path),
    "run's own control socket": (path) => symlinkSync(join(run.statePath, "control.sock"), path),
    "a link to a file of a checkout": (path) => symlinkSync(join(checkouts.shop, "deploy.sh"), path),
    "a link to itself": (path) => symlinkSync(path, path),
    "a device": (path) => symlinkSync("/dev/zero", path),
  };
}

test("a flood of forged pushes stalls nothing, and what it leaves is bounded", async (t) => {
  const site = await startSite(t);
  const { machine, run, commits, ran } = site;
  const inbox = await startLiar(t, machine.inboxSocket);
  const hub = randomCommit();
  const startMs = performance.now();
  let longestMs = 0;
  for (let sent = 0; sent < floodOfPushes; ) {
    for (let count = 0; count < 1_000; count += 1, sent += 1) {
      // Steps that meet in one commit: the costliest to put in order.
      const other = randomCommit();
      const step = sent % 2 === 0 ? { before: other, commit: hub } : { before: hub, commit: other };
      inbox.offer({ project: "shop", push: { ...pushOf(), ...step } });
    }
    while (!inbox.isEmpty()) {
      longestMs = Math.max(longestMs, await assertAnswers(site, "a flood"));
      await until("some are taken", () => inbox.isEmpty(), 200).catch(() => {});
    }
  }
  inbox.offer({ project: "blog", push: pushOf({ commit: commits.head as never }) });
  await until("the other project is deployed", () => ran("blog").length === 1);
  const rows = recorded(site).length;
  assert(rows < 1_700, `${rows} deployments are kept`);
  const minutes = (performance.now() - startMs) / 60_000;
  const lines = run.log.lines.length;
  assert(lines < 1_000 + 300 * minutes, `${lines} lines were logged in ${minutes.toFixed(1)} min`);
  // In a long flood, the remote is asked and its head is deployed; nothing else is.
  assert.deepEqual(
    ran("shop").filter((one) => one !== `refs/heads/main ${commits.head}`),
    [],
  );
  t.diagnostic(
    `${floodOfPushes} offers, ${lines} lines: the longest wait for a command was ${longestMs.toFixed(0)} ms`,
  );
});

test("what an operator requests is deployed amid forged pushes", async (t) => {
  const { machine, run, commits, ran } = await startSite(t);
  const inbox = await startLiar(t, machine.inboxSocket);
  const forge = () => inbox.offer({ project: "shop", push: pushOf() });
  for (let count = 0; count < 50; count += 1) forge();
  await until("they are taken", () => inbox.isEmpty());
  await callService(run.statePath, "POST", "/deployments?project=shop", {});
  await until("the request is deployed", () => {
    if (inbox.isEmpty()) forge();
    return ran("shop").length > 0;
  });
  assert.deepEqual(ran("shop"), [`refs/heads/main ${commits.head}`]);
});

test("pushes are taken again after an inbox was in other hands, whatever its places were", async (t) => {
  const { machine, commits, ran } = await startSite(t);
  const first = await machine.start("receive");
  await deliver(originOf(first), githubPush({ after: commits.head }), "/webhook/shop");
  await until("it is deployed", () => ran("shop").length === 1);
  await first.end("SIGKILL");
  rmSync(machine.inboxSocket);
  const scope = createScope(t);
  const liar = await startLiar(scope, machine.inboxSocket);
  await until("run has named the real inbox", () => liar.heard().includes('"inbox":"'));
  liar.offer({ seq: Number.MAX_SAFE_INTEGER, project: "shop", push: pushOf() });
  await until("it is taken", () => liar.isEmpty());
  scope.end();
  const again = await machine.start("receive");
  await deliver(originOf(again), githubPush({ after: commits.head }), "/webhook/blog");
  await until("the next push is deployed", () => ran("blog").length === 1);
});

interface Liar {
  /** Offers something under the next place, until it is said to be recorded. */
  readonly offer: (offer: object) => void;
  readonly isEmpty: () => boolean;
  /** All that `run` has sent, up to a length. */
  readonly heard: () => string;
}

/** Somebody in the place of the inbox who speaks its protocol. */
async function startLiar(scope: Pick<TestContext, "after">, socketPath: string): Promise<Liar> {
  const own = "22222222-2222-2222-2222-222222222222";
  let waiting: { readonly seq: number }[] = [];
  let [seq, heard] = [0, ""];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const [head = "", body] = text.split("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      if (body === undefined || Buffer.byteLength(body) < length) return;
      if (heard.length < 1_000_000) heard += body;
      const { inbox, recordedSeq } = JSON.parse(body) as { inbox: string | null; recordedSeq: number };
      waiting = waiting.filter((one) => one.seq > recordedSeq);
      const pushes = waiting.slice(0, 100);
      const answer = { inbox: inbox ?? own, pushes, dryRuns: [], secretUses: [] };
      withBody(JSON.stringify(answer))(socket);
    });
  });
  await listenAt(scope, server, socketPath);
  return {
    offer: (offer) => void waiting.push({ seq: ++seq, ...offer }),
    isEmpty: () => waiting.length === 0,
    heard: () => heard,
  };
}

/** @returns how long a command waited for its answer */
async function assertAnswers({ run }: Site, what: string): Promise<number> {
  const startMs = performance.now();
  const { projects } = await callService<{ projects: readonly object[] }>(run.statePath, "GET", "/status");
  const tookMs = performance.now() - startMs;
  assert.equal(projects.length, 2);
  assert.equal(run.child.exitCode, null, `run has ended, because of ${what}`);
  assert(tookMs < mostAnswerMs, `a command waited for ${tookMs.toFixed(0)} ms, because of ${what}`);
  return tookMs;
}

/** Something that ends before its test does. */
function createScope(t: TestContext) {
  const ends: (() => unknown)[] = [];
  const end = () => {
    for (const one of ends.splice(0)) one();
  };
  t.after(end);
  return { after: (one: () => unknown) => void ends.push(one), end };
}

function recorded({ run }: Site) {
  const sql = "SELECT id, state, trigger FROM deployments ORDER BY id";
  return readRecorded(run.statePath, ({ all }) =>
    all(sql).map(({ state, trigger }) => ({ state: String(state), trigger: String(trigger) })),
  );
}

const isOver = (state: string) => !["queued", "running", "interrupted"].includes(state);
const originOf = ({ port }: RunningRole) => `http://127.0.0.1:${port}`;

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, "utf8").trim().split("\n");
  } catch {
    return [];
  }
}
