import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { githubPush } from "../../harness/delivery.ts";
import {
  type DoctorCheck,
  type DoctorOptions,
  makePlace,
  type Place,
  runDoctor,
  runInShell,
} from "../../harness/doctor.ts";
import { freePort } from "../../harness/free-port.ts";
import { needs } from "../../harness/requirements.ts";
import { type Machine, makeMachine } from "../../harness/roles.ts";
import { until } from "../../harness/until.ts";

interface ProjectCheck extends DoctorCheck {
  readonly project: string | null;
}

/** Two projects with a checkout each, and a doctor that has the settings of the service. */
function makeProjects(t: TestContext) {
  const machine = makeMachine(t);
  const places = { shop: makePlace(t), blog: makePlace(t) };
  for (const [name, { repoPath, envFile }] of Object.entries(places)) {
    rmSync(envFile);
    machine.addProject(name, repoPath, { BRANCH: "main" });
    chmodSync(join(machine.projectsPath, `${name}.env`), 0o640);
  }
  return { machine, places, check: (options: DoctorOptions = {}) => checksOf(machine, places.shop, options) };
}

async function checksOf(
  machine: Machine,
  place: Place,
  { args = [], env = {}, directory = "/" }: DoctorOptions,
) {
  const service = {
    PROJECTS_PATH: machine.projectsPath,
    SECRETS_PATH: machine.secretsPath,
    STATE_PATH: machine.statePathOf("run"),
    WEBHOOK_HOST: "127.0.0.1",
  };
  const ended = await runDoctor(place, { args: ["--json", ...args], env: { ...service, ...env }, directory });
  const { checks = [] } = JSON.parse(ended.stdout || "{}") as { readonly checks?: readonly ProjectCheck[] };
  const faults = checks.flatMap(({ id, project, faults: own }) =>
    own.map((fault) => ({ id, project, ...fault })),
  );
  return { ...ended, checks, faults };
}

test("projects: the service is checked once, and each project with its settings", async (t) => {
  const { machine, places, check } = makeProjects(t);
  const { port } = await machine.start("all");
  const url = `http://127.0.0.1:${port}`;
  const all = await check({ args: ["--url", url], env: { WEBHOOK_PORT: String(port) } });
  const faulty = all.faults.filter(({ id }) => id !== "restart");
  assert.deepEqual(faulty, []);
  const about = (id: string) => all.checks.filter((one) => one.id === id).map(({ project }) => project);
  assert.deepEqual(about("port"), [null]);
  assert.deepEqual(about("remote"), ["blog", "shop"]);
  const factsOf = (id: string) => all.checks.filter((one) => one.id === id).map(({ fact }) => fact);
  assert.deepEqual(factsOf("secret-in-use"), [
    "it has accepted a signed ping",
    "it has accepted a signed ping",
  ]);
  assert.deepEqual(factsOf("public-url"), [
    `${url}/webhook/blog has accepted a signed ping`,
    `${url}/webhook/shop has accepted a signed ping`,
  ]);
  const projectsOf = async (options: DoctorOptions) =>
    new Set((await check(options)).checks.map(({ project }) => project));
  assert.deepEqual(await projectsOf({ args: ["--project", "blog", "branch"] }), new Set(["blog"]));
  assert.deepEqual(
    await projectsOf({ args: ["branch"], directory: places.shop.repoPath }),
    new Set(["shop"]),
  );
  const both = { args: ["branch", "--all"], directory: places.shop.repoPath };
  assert.deepEqual(await projectsOf(both), new Set(["blog", "shop"]));
  assert.match((await check({ args: ["--project", "shoe"] })).stderr, /no project shoe\. .*: blog, shop\./);
});

test("projects: what is wrong with a file is found by the project's name, and fixed there", async (t) => {
  const { machine, places, check } = makeProjects(t);
  const file = join(machine.projectsPath, "shop.env");
  writeFileSync(file, `REPO_PATH=${places.shop.repoPath}\nWEBHOOK_SECRET=\nBRUNCH=main\n`, { mode: 0o644 });
  chmodSync(file, 0o644);
  const found = await check({ args: ["configuration", "settings-mode"] });
  assert.deepEqual(
    found.faults.map(({ project, text }) => [project, text.split(/[ :]/, 1)[0]]),
    [
      ["shop", "BRUNCH"],
      ["shop", "WEBHOOK_SECRET"],
      ["shop", file],
    ],
  );
  for (const { command } of found.faults) {
    assert.equal((await runInShell(places.shop, command ?? "false")).exitCode, 0, command ?? "");
  }
  assert.deepEqual((await check({ args: ["configuration", "settings-mode"] })).faults, []);
});

test("projects: two with one checkout, and a name that cannot be one", async (t) => {
  const { machine, places, check } = makeProjects(t);
  machine.addProject("copy", places.shop.repoPath);
  renameSync(join(machine.projectsPath, "blog.env"), join(machine.projectsPath, "My Blog.env"));
  const [name, shared] = (await check({ args: ["projects"] })).faults;
  assert.match(name?.text ?? "", /^My Blog\.env is not the file of a project/);
  assert.equal((await runInShell(places.shop, name?.command ?? "false")).exitCode, 0);
  assert.match(shared?.text ?? "", /^Project shop is not served: REPO_PATH is .*, as in project copy\./);
  rmSync(join(machine.projectsPath, "copy.env"));
  assert.deepEqual((await check({ args: ["projects"] })).faults, []);
});

test("script-secrets: only the process that deploys can read them", needs("root"), async (t) => {
  const { machine, places, check } = makeProjects(t);
  const file = join(machine.secretsPath, "shop.env");
  writeFileSync(file, "TOKEN=1\n", { mode: 0o644 });
  const receive = machine.statePathOf("receive");
  mkdirSync(receive);
  writeFileSync(machine.inboxSocket, "");
  chownSync(machine.inboxSocket, 4711, 4711);
  const args = { args: ["script-secrets"], env: { INBOX_SOCKET: machine.inboxSocket } };
  const found = (await check(args)).faults;
  assert.match(found[0]?.text ?? "", /^Other users can read .*shop\.env/);
  assert.match(found[1]?.text ?? "", /^`hotpush receive` \(uid 4711\) can read .*shop\.env/);
  assert.equal((await runInShell(places.shop, found[1]?.command ?? "false")).exitCode, 0);
  const [after] = (await check(args)).checks;
  assert.equal(after?.fact, "only their owner can read 1 files, and not receive (uid 4711)");
});

test("inbox: finds which process does not run, and pushes that wait", async (t) => {
  const { machine, check } = makeProjects(t);
  const [options] = [{ args: ["inbox"], env: { INBOX_SOCKET: machine.inboxSocket } }];
  const texts = async () => (await check(options)).faults.map(({ text }) => text).join("\n");
  assert.match(
    await texts(),
    /`hotpush receive` does not answer at .* \(ENOENT\).*No Hotpush runs deployments/s,
  );
  const receive = await machine.start("receive", { WEBHOOK_PORT: String(await freePort()) });
  assert.match(await texts(), /^hotpush run: No Hotpush runs deployments/);
  await fetch(receive.urlOf("shop"), { method: "POST", ...githubPush() });
  assert.doesNotMatch(await texts(), /has waited/);
  using inbox = new DatabaseSync(join(receive.statePath, "inbox.db"));
  inbox.exec("UPDATE pushes SET received_at_ms = 0");
  assert.match(await texts(), /The oldest push in the inbox has waited for \d+ h .* \(1 in all\)/);
  const run = await machine.start("run");
  await until("both answer", async () => (await texts()) === "");
  const [ok] = (await check({ ...options, args: ["inbox", "running", "port"] })).checks;
  assert.equal(ok?.fact, "receive answers, run takes from it, and nothing waits long");
  run.child.kill("SIGSTOP");
  await receive.end("SIGKILL");
  run.child.kill("SIGCONT");
  await until("run reports it", async () => /hotpush receive/.test(await texts()));
});

test("inbox: in the container of run, receive is found by its socket", async (t) => {
  const { machine, check } = makeProjects(t);
  await machine.start("receive");
  const port = String(await freePort());
  const { checks } = await check({
    args: ["running", "port"],
    env: { INBOX_SOCKET: machine.inboxSocket, WEBHOOK_PORT: port },
  });
  const facts = checks.map(({ fact }) => fact);
  assert.deepEqual(facts, [
    "receive has it, on another network",
    "receive answers on the socket of its inbox",
  ]);
});
