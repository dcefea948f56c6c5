import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { DeploymentJson, StatusJson, WholeStatusJson } from "../../src/calls/shapes.ts";
import { githubPush } from "../harness/delivery.ts";
import { commandEnvironment, hotpush, hotpushJson, launcher } from "../harness/hotpush.ts";
import { makeCheckout, pushTo, type RunningRole, startProjects } from "../harness/machine.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const targetOf = ({ statePath }: RunningRole, cwd = "/") => ({ statePath, cwd });
const longName = "a-project-whose-name-is-as-long-as-can";

test("a command is about the project of the working directory, also through a link", async (t) => {
  const { machine, service, paths } = await startProjects(t, { shop: "echo sold", blog: "echo read" });
  const [shop = "", blog = ""] = [paths.get("shop"), paths.get("blog")];
  const inner = join(shop, "packages/inner");
  mkdirSync(join(inner, "src"), { recursive: true });
  const link = join(temporaryDirectory(t), "link");
  symlinkSync(blog, link);
  for (const name of ["shop", "blog"]) await pushTo(service, name);
  for (const id of [1, 2]) await service.log.waitForEnding(id);
  assert.match((await hotpush(targetOf(service, join(inner, "src")), "logs")).stdout, /^sold$/m);
  assert.match((await hotpush(targetOf(service, link), "logs")).stdout, /^read$/m);
  assert.match((await hotpush(targetOf(service, link), "logs", "--project", "shop")).stdout, /^sold$/m);
  assert.match((await hotpush(targetOf(service, link), "logs", "1")).stdout, /^sold$/m);
  const status = await hotpushJson<StatusJson>(targetOf(service, link), "status");
  assert.deepEqual([status.project, status.last.map(({ id }) => id)], ["blog", [2]]);
  machine.addProject("inner", inner);
  await until("the innermost project is found", async () => {
    const answer = await hotpushJson<Partial<StatusJson>>(targetOf(service, join(inner, "src")), "status");
    return answer.project === "inner";
  });
});

test("a checkout is found under another path too, as a container has it", needs("mount"), async (t) => {
  const { service, paths } = await startProjects(t, { shop: "true", blog: "true" });
  const script = 'mount --bind "$1" "$2" && cd "$2" && exec "$3" status --json';
  const elsewhere = [paths.get("blog") ?? "", temporaryDirectory(t), launcher];
  await hotpush(targetOf(service), "status");
  const env = commandEnvironment(service);
  const json = execFileSync("unshare", ["--mount", "sh", "-c", script, "sh", ...elsewhere], { env });
  assert.equal((JSON.parse(String(json)) as StatusJson).project, "blog");
});

test("without a project, status and history show all, and other commands say which there are", async (t) => {
  const { service } = await startProjects(t, { shop: "true", [longName]: "false" });
  for (const name of ["shop", longName]) await pushTo(service, name);
  for (const id of [1, 2]) await service.log.waitForEnding(id);
  const target = targetOf(service);
  for (const command of ["logs", "deploy", "cancel", "rollback", "pause", "resume"]) {
    const { code, stderr } = await hotpush(target, command);
    assert.deepEqual([code, stderr.includes(`: ${longName}, shop.`)], [1, true], command);
  }
  const unknown = await hotpush(target, "deploy", "--project", "shap");
  assert.match(unknown.stderr, /There is no project shap\. The projects are: a-project.*, shop\./);
  const status = await hotpushJson<WholeStatusJson>(target, "status");
  const history = await hotpushJson<{ deployments: DeploymentJson[] }>(target, "history");
  assert.deepEqual(
    [...status.projects.map(({ name }) => name), ...history.deployments.map(({ project }) => project)],
    [longName, "shop", longName, "shop"],
  );
  for (const command of ["status", "history"]) {
    for (const line of (await hotpush(target, command)).stdout.split("\n"))
      assert.ok(line.length <= 80, `${command}: ${line}`);
  }
  for (const command of ["logs", "cancel", "rollback"]) {
    const { code, stderr } = await hotpush(target, command, "1", "--project", longName);
    assert.deepEqual([code, /Deployment 1 is one of the project shop/.test(stderr)], [1, true], command);
  }
});

test("a paused project says so to the git host, and in each command that it concerns", async (t) => {
  const { service, paths } = await startProjects(t, { shop: "true", blog: "true" });
  const target = targetOf(service, paths.get("shop"));
  const paused = { ...target, env: { USER: "ada" } };
  const { stdout } = await hotpush(paused, "pause", "--reason", "the shop\u001b[2J is being moved");
  assert.match(stdout, /by ada \(reported\): the shop.* being moved\n$/);
  assert.ok(!stdout.includes("\u001b"), stdout);
  const { status, body } = await pushTo(service, "shop", githubPush());
  assert.deepEqual([status, (body as { deployment?: { state: string } }).deployment?.state], [202, "queued"]);
  assert.match(String(body.detail), /hotpush resume/);
  assert.doesNotMatch(String((await pushTo(service, "blog")).body.detail), /resume/);
  await service.log.waitForEnding(2);
  for (const cwd of [target.cwd, "/"])
    assert.match((await hotpush({ ...target, cwd }, "status")).stdout, /paused since .*, by ada/);
  assert.equal((await hotpush(target, "resume")).code, 0);
  await service.log.waitForEnding(1);
  assert.match((await hotpush(target, "resume")).stderr, /The queue of shop is not paused/);
});

test("status names the projects whose settings are faulty, and why", async (t) => {
  const { machine, service } = await startProjects(t, { blog: "true", shop: "true" });
  const target = targetOf(service);
  writeFileSync(join(machine.projectsPath, "wiki.env"), "REPO_PTH=/srv/wiki\n");
  machine.addProject("blog", "", {});
  const both = /\nSettings {3}blog: REPO_PATH is missing.*\n {11}wiki: REPO_PTH/s;
  await until("the faults are shown", async () => both.test((await hotpush(target, "status")).stdout));
  const one = await hotpush(target, "status", "--project", "blog");
  assert.match(one.stdout, /\nSettings {3}REPO_PATH is missing/);
  const faulty = await hotpush(target, "deploy", "--project", "wiki");
  assert.match(faulty.stderr, /Project wiki has faulty settings: .*REPO_PTH/);
});

test("drop-previous does not judge the secret of one project by that of another", async (t) => {
  const { service, paths } = await startProjects(t, { shop: "true", blog: "true" });
  const file = join(makeCheckout(t), "blog.env");
  writeFileSync(file, "WEBHOOK_SECRET=x\nWEBHOOK_SECRET_PREVIOUS=y\n");
  const words = ["secret", "drop-previous", "--env-file", file];
  const { code, stderr } = await hotpush(targetOf(service, paths.get("shop")), ...words);
  assert.deepEqual([code, /add --project <name>/.test(stderr)], [1, true]);
});
