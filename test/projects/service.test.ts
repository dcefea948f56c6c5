import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { githubPush } from "../harness/delivery.ts";
import { hotpush } from "../harness/hotpush.ts";
import {
  makeCheckout,
  makeMachine,
  pushTo,
  type RunningRole,
  startProjects,
  waitsForGo,
} from "../harness/machine.ts";
import { straced } from "../harness/processes.ts";
import { readDeployments } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import { contentsOf } from "../harness/secrecy.ts";
import { until } from "../harness/until.ts";

const started = (service: RunningRole) =>
  service.log.lines.filter(({ event }) => event === "deployment.started").map(({ deployment }) => deployment);

test("an unknown project is answered like a wrong signature; a secret opens no other", async (t) => {
  const machine = makeMachine(t);
  const own = "the secret of the blog, long enough";
  machine.addProject("shop", makeCheckout(t));
  machine.addProject("blog", makeCheckout(t), { WEBHOOK_SECRET: own });
  const service = await machine.start("all");
  assert.equal((await pushTo(service, "blog")).status, 401);
  assert.equal((await pushTo(service, "blog", githubPush({}, own))).status, 202);
  const unknown = await pushTo(service, "no-such-project");
  const wrong = await pushTo(service, "shop", githubPush({}, "another secret of a good length"));
  assert.equal(unknown.status, 401);
  assert.deepEqual({ ...unknown.body, instance: "" }, { ...wrong.body, instance: "" });
  for (const name of ["", "Shop", "../shop", "shop/", "shop/x", "__proto__"]) {
    assert.equal((await pushTo(service, encodeURIComponent(name))).status, 401, name);
  }
  const plain = await fetch(service.urlOf("").slice(0, -1), { method: "POST", ...githubPush() });
  assert.equal(plain.status, 404);
  assert.match(await plain.text(), /POST \/webhook\/<project>/);
});

test("one project deploys at a time, and who waited longest is next", async (t) => {
  const { service, go } = await startProjects(t, { a: waitsForGo, b: "true", c: "true" });
  await pushTo(service, "a");
  await service.log.waitFor(({ event }) => event === "deployment.started");
  for (const name of ["a", "b", "c"]) await pushTo(service, name);
  assert.deepEqual(started(service), [1]);
  go("a");
  for (const id of [2, 3, 4]) await service.log.waitForEnding(id);
  assert.deepEqual(started(service), [1, 3, 4, 2]);
});

test("a script keeps its checkout while REPO_PATH changes, also through a crash", async (t) => {
  const machine = makeMachine(t);
  const before = makeCheckout(t, waitsForGo);
  machine.addProject("shop", before);
  const service = await machine.start("all");
  await pushTo(service, "shop");
  await service.log.waitFor(({ event }) => event === "deployment.started");
  machine.addProject("shop", makeCheckout(t));
  const isRead = () => service.log.lines.filter(({ event }) => event === "project.read").length === 2;
  await until("the new settings are read", isRead);
  await service.end("SIGKILL");
  const next = await machine.start("all");
  await next.log.waitFor(({ event }) => event === "deployment.adopted");
  writeFileSync(join(before, "go"), "");
  assert.equal((await next.log.waitForEnding(1)).event, "deployment.succeeded");
});

test("MAX_RUNNING projects deploy at once, each one push at a time", async (t) => {
  const scripts = { a: waitsForGo, b: waitsForGo, c: waitsForGo };
  const { service, go } = await startProjects(t, scripts, { MAX_RUNNING: "2" });
  for (const name of ["a", "a", "b", "c"]) await pushTo(service, name);
  await until("two run", () => started(service).length === 2);
  go("b");
  await until("the third has begun", () => started(service).length === 3);
  assert.deepEqual(started(service), [1, 3, 4]);
  for (const name of ["a", "c"]) go(name);
  for (const id of [1, 2, 3, 4]) await service.log.waitForEnding(id);
});

test("a project that is added is served soon; one that is removed is not, and what waits stays", async (t) => {
  const { machine, service, go } = await startProjects(t, { shop: waitsForGo });
  const countOfShop = (wanted: string) =>
    service.log.lines.filter(({ event, project }) => event === wanted && project === "shop").length;
  await pushTo(service, "shop");
  await until("the shop is deployed", () => countOfShop("deployment.started") === 1);
  await pushTo(service, "shop");
  machine.addProject("blog", makeCheckout(t));
  rmSync(join(machine.projectsPath, "shop.env"));
  await until("the shop is not served", async () => (await pushTo(service, "shop")).status === 401);
  await until("the blog is served", async () => (await pushTo(service, "blog")).status === 202);
  go("shop");
  await until("what ran has ended", () => countOfShop("deployment.succeeded") === 1);
  await service.log.waitFor(({ event, project }) => event === "deployment.succeeded" && project === "blog");
  assert.equal(countOfShop("deployment.started"), 1);
  assert.equal(readDeployments(service.statePath).filter(({ state }) => state === "queued").length, 1);
});

test("the secrets of a project reach its script alone, and not the log", async (t) => {
  const machine = makeMachine(t);
  machine.addProject("shop", makeCheckout(t, 'echo "token: $API_TOKEN, customer: $CUSTOMER"'));
  machine.addProject("blog", makeCheckout(t, 'echo "token: $API_TOKEN"'));
  const secrets = "API_TOKEN=tok-4711-abcdef\nCUSTOMER=of-no-telling-name\n";
  writeFileSync(join(machine.secretsPath, "shop.env"), secrets, { mode: 0o600 });
  const service = await machine.start("all");
  await pushTo(service, "shop");
  await pushTo(service, "blog");
  await service.log.waitForEnding(1);
  await service.log.waitForEnding(2);
  assert.deepEqual(service.log.outputOf(1), ["token: ***, customer: ***"]);
  assert.deepEqual(service.log.outputOf(2), ["token: "]);
});

test("a secret of a command is in no log, no record and no answer", async (t) => {
  const machine = makeMachine(t);
  const script = 'echo "==> Use $GREETING"; echo "it is $GREETING"; exit 1';
  machine.addProject("shop", makeCheckout(t, script));
  const value = "correct-horse-battery";
  const command = `GREETING=!sh -c "echo ${[...value].join("''")}"\n`;
  writeFileSync(join(machine.secretsPath, "shop.env"), command, { mode: 0o600 });
  const service = await machine.start("all");
  await pushTo(service, "shop");
  await service.log.waitForEnding(1);
  assert.deepEqual(service.log.outputOf(1), ["==> Use ***", "it is ***"]);
  const commands = [
    ["status", "--json"],
    ["history", "--json"],
    ["logs", "1"],
  ];
  const answers = await Promise.all(commands.map((args) => hotpush(service, ...args, "--project", "shop")));
  const texts = [
    JSON.stringify(service.log.lines),
    ...answers.map(({ stdout, stderr }) => stdout + stderr),
    ...contentsOf(service.statePath),
  ];
  assert.deepEqual(
    answers.map(({ code }) => code),
    [0, 0, 0],
  );
  assert.match(answers[0]?.stdout ?? "", /it is \*\*\*/);
  assert.deepEqual(
    texts.filter((text) => text.includes(value)),
    [],
  );
});

test(
  "a new project whose script cannot be read at the moment is served, and so are the others",
  needs("strace"),
  async (t) => {
    const machine = makeMachine(t);
    machine.addProject("blog", makeCheckout(t));
    const shop = makeCheckout(t);
    const noDescriptor = [...straced("openat:error=EMFILE"), "-P", join(shop, "deploy.sh")];
    const service = await machine.start("all", {}, noDescriptor);
    machine.addProject("shop", shop);
    await until("the shop is served", async () => (await pushTo(service, "shop")).status === 202);
    assert.equal((await pushTo(service, "blog")).status, 202);
    assert.equal((await pushTo(service, "shop")).status, 202);
  },
);
