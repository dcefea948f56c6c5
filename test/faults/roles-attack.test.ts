import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import process from "node:process";
import { type TestContext, test } from "node:test";
import { callRun } from "../../src/calls/client.ts";
import { isFinished } from "../../src/deployments/deployment.ts";
import { sendHttp, withShortPath } from "../../src/platform/http.ts";
import { githubPush, randomCommit } from "../harness/delivery.ts";
import { makeMachine, pushTo } from "../harness/machine.ts";
import { readDeployments, readRecorded } from "../harness/records.ts";
import { makeRepository } from "../harness/repository.ts";
import { becomeNobody, nobody } from "../harness/requirements.ts";
import { pushOf } from "../harness/store.ts";
import { linesOf, temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const floodOfPushes = Number(process.env.HOTPUSH_TEST_OFFERS ?? 3_000);
const token = "tok-4711-only-for-deploy";
/** How soon a command is answered, whatever is offered. */
const mostAnswerMs = 10_000;

type Site = Awaited<ReturnType<typeof startSite>>;

const script = `#!/bin/sh
echo "$*" >>ran
echo "token: $TOKEN"
git fetch --quiet origin && git reset --quiet --hard "$2"
`;

/** Two projects with a real branch each; `run` runs, and nothing is in the place of `front`. */
async function startSite(t: TestContext) {
  const remote = makeRepository(t);
  // Two commits of the branch, and one of another branch, which the checkouts have too.
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
  mkdirSync(machine.spoolPath, { recursive: true });
  const run = await machine.start("run", { DEPLOY_RETRY_PAUSES: "0.1", MAX_RUNNING: "2" });
  await until("commands are answered", () => existsSync(join(run.statePath, "control.sock")));
  /** What the scripts of a project were started with. */
  const ran = (project: "shop" | "blog"): readonly string[] => linesOf(join(checkouts[project], "ran"));
  return { machine, run, checkouts, commits: { old, head, side }, ran };
}

test("the rights of front reach no secret, record, checkout, setting, command or process of run", {
  skip: process.getuid?.() !== 0 && "needs root, to start a process as another user",
}, async (t) => {
  const { machine, run, checkouts, commits, ran } = await startSite(t);
  const ownPath = machine.statePathOf("front");
  for (const path of [ownPath, machine.spoolPath]) chownSync(path, nobody, nobody);
  const front = await machine.start("front", {}, becomeNobody);
  await pushTo(front, "shop", githubPush({ after: commits.head }));
  await until("front works with these rights", () => ran("shop").length === 1);
  await front.end();
  const { projectsPath, secretsPath } = machine;
  const { child, statePath } = run;
  const prey = { ownPath, projectsPath, secretsPath, statePath, checkout: checkouts.shop, runPid: child.pid };
  const attacker = [process.execPath, join(import.meta.dirname, "attacker.ts")];
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
  const { commits, ran, run } = site;
  const spool = useSpool(site);
  const offer = async (fields: object, more: object = {}) => {
    const count = recorded(site).length;
    spool.put({ project: "shop", push: { ...pushOf(), ...fields }, ...more });
    await until("it is recorded", () => recorded(site).length > count);
    await until("it has ended", () => recorded(site).every(({ state }) => isFinished(state)));
  };

  await offer({ commit: commits.side });
  await offer({ commit: randomCommit() });
  assert.deepEqual(ran("shop"), [`refs/heads/main ${commits.head}`], "whatever commit is named");
  assert.deepEqual(
    recorded(site).map(({ state }) => state),
    ["succeeded", "skipped"],
  );

  const rollback = { trigger: "rollback", id: 1, state: "succeeded", requestedBy: "root" };
  const replayed = pushOf({ commit: commits.head as never });
  await offer(replayed);
  await offer({ commit: commits.old, ...rollback }, rollback);
  await offer({ commit: commits.old, before: commits.head });
  const count = recorded(site).length;
  spool.put({ project: "shop", push: replayed });
  spool.put({ project: "shop", push: { ...pushOf(), ref: "refs/heads/main;touch owned" } });
  spool.put({ project: "shop", push: { ...pushOf(), ref: "refs/heads/side" } });
  spool.put({ project: "shop", push: { ...pushOf(), commit: "$(touch owned)" } });
  spool.put({ project: "shop", push: { ...pushOf(), commit: "--upload-pack=touch owned" } });
  spool.put({ project: "../shop", push: pushOf() });
  spool.put({ project: "__proto__", push: pushOf() });
  spool.put({ project: "missing", push: pushOf() });
  await until("all are taken", () => spool.isTaken());
  assert.equal(recorded(site).length, count, "a replayed push and no push make no deployment");

  assert.deepEqual([...new Set(ran("shop"))], [`refs/heads/main ${commits.head}`]);
  assert.deepEqual(ran("blog"), []);
  assert.deepEqual([...new Set(recorded(site).map(({ trigger }) => trigger))], ["push"]);
  const answer = await callFront(site, "POST", "/front/pushes", { ids: spool.ids.slice(0, 20) });
  const heard = answer.body.toString();
  assert(heard.includes("accepted"), "run has answered");
  assert(!heard.includes(token), "no answer has a secret");
  assert(
    run.log.lines.some(({ msg }) => msg === "token: ***"),
    "the script had the secret",
  );
});

/** What somebody in the place of `front` can say on the socket of `run`. */
const requests: Readonly<Record<string, string>> = {
  "no HTTP": "\0\u0001\u0002 hello\r\n\r\n",
  "half a request": "POST /front/pushes HTTP/1.1\r\ncontent-length: 100\r\n\r\n{",
  "two lengths": "POST /front/pushes HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
  "a long header": `POST /front/pushes HTTP/1.1\r\nx: ${"y".repeat(100_000)}\r\n\r\n`,
  "a chunk of 16 EB":
    "POST /front/pushes HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n[",
  "another protocol": "GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
  "deep JSON": bodyOf("/front/pushes", "[".repeat(15_000)),
  "a large body": bodyOf("/front/pushes", "[".repeat(1_000_000)),
  "ids that are paths": bodyOf("/front/pushes", '{"ids":["../../state/hotpush.db",{"__proto__":1}]}'),
  "a prototype": bodyOf("/front/dry-run", '{"project":"__proto__","push":{"__proto__":{"ref":1}}}'),
  "uses without end": bodyOf("/front/uses", `{"uses":[${"{},".repeat(4_000)}{}]}`),
};

function bodyOf(path: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

test("nothing on the socket or in the spool keeps run from its commands and its work", async (t) => {
  const site = await startSite(t);
  const { machine, run, commits, ran } = site;
  for (const [what, text] of Object.entries(requests)) {
    const socket = connect(frontSocketOf(site), () => socket.write(text));
    socket.on("error", () => {});
    t.after(() => socket.destroy());
    await once(socket, "connect");
    await assertAnswers(site, what);
  }
  for (const [what, make] of Object.entries(places(site))) {
    make(join(machine.spoolPath, `${randomBytes(16).toString("hex")}.push`));
    await assertAnswers(site, what);
  }
  const front = await machine.start("front");
  for (const name of ["shop", "blog"] as const) {
    await pushTo(front, name, githubPush({ after: commits.head }));
    await until(`${name} is deployed`, () => ran(name).length === 1);
  }
  const lines = run.log.lines.filter(({ event }) => event?.startsWith("spool."));
  assert(lines.length < 60, `${lines.length} lines about the spool`);
});

/** What can be put in the place of a push. */
function places({ run, checkouts }: Site): Readonly<Record<string, (path: string) => void>> {
  return {
    "a FIFO": (path) => void execFileSync("mkfifo", [path]),
    "a directory": (path) => mkdirSync(path),
    "the control socket": (path) => symlinkSync(join(run.statePath, "control.sock"), path),
    "a link to a file of a checkout": (path) => symlinkSync(join(checkouts.shop, "deploy.sh"), path),
    "a link to itself": (path) => symlinkSync(path, path),
    "a device": (path) => symlinkSync("/dev/zero", path),
    "a large file": (path) => writeFileSync(path, "[".repeat(10_000_000)),
    "deep JSON": (path) => writeFileSync(path, "[".repeat(16_000)),
  };
}

test("without a visitor's session, front reads, deploys, cancels and rolls back nothing", async (t) => {
  const site = await startSite(t);
  for (const call of [
    "GET /projects",
    "GET /deployments",
    "POST /deployments",
    "POST /rollback",
    "POST /pause",
  ]) {
    const [method = "", path = ""] = call.split(" ");
    assert.equal((await callFront(site, method, path, {})).status, 401, call);
  }
  assert.equal(recorded(site).length, 0);
});

test("a flood of forged pushes stalls nothing, and what it leaves is bounded", async (t) => {
  const site = await startSite(t);
  const { run, commits, ran } = site;
  const spool = useSpool(site);
  const hub = randomCommit();
  const startMs = performance.now();
  for (let sent = 0; sent < floodOfPushes; ) {
    for (let count = 0; count < 1_000; count += 1, sent += 1) {
      // Steps that meet in one commit: the costliest to put in order.
      const other = randomCommit();
      const step = sent % 2 === 0 ? { before: other, commit: hub } : { before: hub, commit: other };
      spool.put({ project: "shop", push: { ...pushOf(), ...step } });
    }
    while (!spool.isTaken()) {
      await assertAnswers(site, "a flood");
      await until("some are taken", () => spool.isTaken(), 200).catch(() => {});
    }
  }
  spool.put({ project: "blog", push: pushOf({ commit: commits.head as never }) });
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
});

test("what an operator requests is deployed amid forged pushes", async (t) => {
  const site = await startSite(t);
  const { run, commits, ran } = site;
  const spool = useSpool(site);
  const forge = () => spool.put({ project: "shop", push: pushOf() });
  for (let count = 0; count < 50; count += 1) forge();
  await until("they are taken", () => spool.isTaken());
  await callRun(run.statePath, "deploy", { project: "shop" });
  await until("the request is deployed", () => {
    if (spool.isTaken()) forge();
    return ran("shop").length > 0;
  });
  assert.deepEqual(ran("shop"), [`refs/heads/main ${commits.head}`]);
});

test("pushes are taken again after the spool was in other hands", async (t) => {
  const site = await startSite(t);
  const { machine, ran, commits } = site;
  const spool = useSpool(site);
  for (let count = 0; count < 1_500; count += 1) spool.put({ project: "missing", push: pushOf() });
  const front = await machine.start("front");
  const push = async () => (await pushTo(front, "blog", githubPush({ after: commits.head }))).status;
  await until("there is room again", async () => (await push()) === 202);
  await until("the next push is deployed", () => ran("blog").length === 1);
});

/** Puts things into the spool, as whoever has taken over `front` can. */
function useSpool({ machine, run }: Site) {
  const ids: string[] = [];
  let waiting: string[] = [];
  return {
    put(value: object) {
      const id = randomBytes(16).toString("hex");
      const path = join(machine.spoolPath, `${id}.push`);
      writeFileSync(`${path}.new`, JSON.stringify(value));
      renameSync(`${path}.new`, path);
      ids.push(id);
      waiting.push(id);
    },
    /** Whether `run` is done with all of it. */
    isTaken() {
      const rows = readRecorded(run.statePath, ({ all }) => all("SELECT id FROM spooled"));
      const known = new Set(rows.map(({ id }) => String(id)));
      for (const id of waiting)
        if (known.has(id)) rmSync(join(machine.spoolPath, `${id}.push`), { force: true });
      waiting = waiting.filter((id) => !known.has(id));
      return waiting.length === 0;
    },
    ids,
  };
}

function frontSocketOf({ run }: Site): string {
  return join(run.statePath, "front.sock");
}

function callFront(site: Site, method: string, path: string, body: object) {
  const options = { method, ...(method === "POST" && { body: JSON.stringify(body) }) };
  return withShortPath(frontSocketOf(site), (socketPath) => sendHttp({ socketPath, path }, options));
}

async function assertAnswers({ run }: Site, what: string): Promise<void> {
  const startMs = performance.now();
  const { projects } = await callRun(run.statePath, "projects", {});
  const tookMs = performance.now() - startMs;
  assert.equal(projects.length, 2);
  assert.equal(run.child.exitCode, null, `run has ended, because of ${what}`);
  assert(tookMs < mostAnswerMs, `a command waited for ${tookMs.toFixed(0)} ms, because of ${what}`);
}

const recorded = ({ run }: Site) => readDeployments(run.statePath);
