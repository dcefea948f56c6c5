import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { testSecret } from "../harness/delivery.ts";
import { type DoctorCheck, type DoctorOptions, makePlace, runCommand, runDoctor } from "../harness/doctor.ts";
import { makeMachine } from "../harness/machine.ts";
import { needs } from "../harness/requirements.ts";

type ProjectCheck = DoctorCheck & { readonly project: string | null };

/** Two projects with a checkout each, and a doctor that has the settings of the service. */
function makeProjects(t: TestContext) {
  const machine = makeMachine(t);
  const places = { shop: makePlace(t), blog: makePlace(t) };
  for (const [name, { repoPath, envFile }] of Object.entries(places)) {
    rmSync(envFile);
    machine.addProject(name, repoPath, { BRANCH: "main" });
    chmodSync(join(machine.projectsPath, `${name}.env`), 0o640);
  }
  const service = {
    PROJECTS_PATH: machine.projectsPath,
    SECRETS_PATH: machine.secretsPath,
    STATE_PATH: machine.statePathOf("run"),
    WEBHOOK_HOST: "127.0.0.1",
  };
  const check = async ({ args = [], env = {}, directory = "/" }: DoctorOptions) => {
    const options = { args: ["--json", ...args], env: { ...service, ...env }, directory };
    const { code, stdout } = await runDoctor(places.shop, options);
    const { checks = [] }: { checks?: readonly ProjectCheck[] } = JSON.parse(stdout || "{}");
    const faults = checks.flatMap(({ id, project, faults }) =>
      faults.map((fault) => ({ id, project, ...fault })),
    );
    return { code, checks, faults };
  };
  return { machine, places, check };
}

test("projects: the service is checked once, and each project with its settings", async (t) => {
  const { machine, places, check } = makeProjects(t);
  const { port } = await machine.start("all");
  const url = `http://127.0.0.1:${port}`;
  const all = await check({ args: ["--url", url], env: { WEBHOOK_PORT: String(port) } });
  assert.deepEqual(all.faults, []);
  const about = (id: string) => all.checks.filter((one) => one.id === id).map(({ project }) => project);
  assert.deepEqual(about("queue"), [null, "blog", "shop"]);
  assert.deepEqual(about("remote"), ["blog", "shop"]);
  const passed = (id: string) => all.checks.filter((one) => one.id === id && one.outcome === "ok").length;
  assert.deepEqual([passed("running"), passed("public-url")], [2, 2]);
  const projectsOf = async (options: DoctorOptions) =>
    (await check({ args: ["branch"], ...options })).checks.map(({ project }) => project);
  assert.deepEqual(await projectsOf({ args: ["--project", "blog", "branch"] }), ["blog"]);
  assert.deepEqual(await projectsOf({ directory: places.shop.repoPath }), ["shop"]);
  assert.equal((await check({ args: ["--project", "shoe"] })).code, 1);
});

test("projects: what is wrong with a file is found by the project's name, and fixed there", async (t) => {
  const { machine, places, check } = makeProjects(t);
  const file = join(machine.projectsPath, "shop.env");
  writeFileSync(file, `REPO_PATH=${places.shop.repoPath}\nWEBHOOK_SECRET=\n`);
  for (const [id, mode] of [
    ["configuration", 0o640],
    ["secret-files", 0o644],
  ] as const) {
    chmodSync(file, mode);
    const { faults } = await check({ args: ["configuration", "secret-files"] });
    assert.deepEqual(
      faults.map((fault) => [fault.id, fault.project]),
      [[id, "shop"]],
    );
    for (const fault of faults) await runCommand(places.shop, fault);
    assert.equal(statSync(file).mode & 0o777, 0o640, "hotpush front reads it by its group");
  }
  writeFileSync(file, `REPO_PATH=${places.shop.repoPath}\nWEBHOOK_SECRET=${testSecret}\nBRUNCH=main\n`);
  const { faults } = await check({ args: ["configuration", "secret-files"] });
  assert.deepEqual(
    faults.map(({ id, project, command }) => [id, project, command]),
    [["configuration", "shop", null]],
  );
});

test(
  "secret-files: only the process that deploys can read the secrets of scripts",
  needs("root"),
  async (t) => {
    const { machine, places, check } = makeProjects(t);
    const [shop, blog] = ["shop", "blog"].map((name) => join(machine.secretsPath, `${name}.env`)) as [
      string,
      string,
    ];
    for (const file of [shop, blog]) writeFileSync(file, "TOKEN=1\n", { mode: 0o600 });
    chmodSync(shop, 0o644);
    chownSync(blog, 4711, 4711);
    mkdirSync(machine.spoolPath, { recursive: true });
    chownSync(machine.spoolPath, 4711, 4711);
    const ofService = async () => {
      const { faults } = await check({ args: ["secret-files"], env: { SPOOL_PATH: machine.spoolPath } });
      return faults.filter(({ project }) => project === null);
    };
    const found = await ofService();
    assert.deepEqual(found.map(({ command }) => command).sort(), [
      `chmod 600 ${shop}`,
      `chown ${process.getuid?.()} ${blog}`,
    ]);
    for (const fault of found) await runCommand(places.shop, fault);
    assert.deepEqual(await ofService(), []);
  },
);
