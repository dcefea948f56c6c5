import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { type FakeContainer, logged, startFakeEngine, writeAll } from "../harness/fake-engine.ts";
import { hotpush, startCommand } from "../harness/hotpush.ts";
import { signIn, startPage } from "../harness/page.ts";
import { startService } from "../harness/service.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";

const web1: FakeContainer = { id: "aaa1", service: "web", number: 1 };
const web2: FakeContainer = { id: "bbb2", service: "web", number: 2 };

async function startWith(scope: Scope, ...containers: readonly FakeContainer[]) {
  const repoPath = temporaryDirectory(scope);
  const engine = await startFakeEngine(scope, repoPath);
  engine.containers.push(...containers);
  return { engine, service: await startService(scope, { repoPath, env: engine.env }) };
}

test("a service is followed across a roll-out and a restart, each line once, by its container", async (t) => {
  const { engine, service } = await startWith(t, web1, { id: "ddd4", service: "db", number: 1 });
  const command = startCommand(t, service, "logs", "--service", "web", "-f", "--tail", "5");
  const old = await engine.log("aaa1");
  assert.deepEqual([old.query.get("tail"), old.query.get("follow")], ["5", "true"]);
  old.response.write(Buffer.concat([logged(1, "old\n"), logged(2, "half "), logged(3, "a line\r\n")]));
  await engine.start(web2);
  const next = await engine.log("bbb2");
  assert.equal(next.query.get("tail"), "all");
  next.response.write(logged(4, "\u001b[31mnew\u001b[0m\u0007\n", 2));
  await command.waitForLine(/new/);
  old.response.end(logged(5, "no line end"));
  await command.waitForLine(/web-1 has ended/);
  next.response.write(logged(6, "last words\n"));
  await command.waitForLine(/last words/);
  await engine.start(web2);
  next.response.end();
  const again = await engine.log("bbb2", 1);
  assert.equal(again.query.get("since"), String(Date.parse("2026-11-26T12:00:06Z") / 1_000));
  again.response.write(Buffer.concat([logged(6, "last words\n"), logged(7, "back\n")]));
  await command.waitForLine(/back/);
  assert.deepEqual(command.lines, [
    "web-1 has begun",
    "web-1 | old",
    "web-1 | half a line",
    "web-2 has begun",
    "web-2 | new",
    "web-1 | no line end",
    "web-1 has ended",
    "web-2 | last words",
    "web-2 has ended",
    "web-2 has begun",
    "web-2 | back",
  ]);
  const left = once(again.response, "close");
  command.child.kill("SIGINT");
  assert.equal(await command.ended, 130);
  await left;
});

test("a container whose log goes elsewhere is named, with the reason", async (t) => {
  const { service } = await startWith(t, { ...web1, isUnreadable: true });
  const { code, stdout } = await hotpush(service, "logs", "--service", "web");
  assert.equal(code, 0);
  assert.match(stdout, /^web-1 cannot be read: .*501.*no reading\n$/);
});

test("the secrets of a container and of its project are hidden, also in two frames", async (t) => {
  const repoPath = temporaryDirectory(t);
  const engine = await startFakeEngine(t, repoPath);
  engine.containers.push({ ...web1, env: ["DB_PASSWORD=of-the-container"] });
  const env = { ...engine.env, DEPLOY_ENV: "API_TOKEN", API_TOKEN: "of-the-project" };
  const service = await startService(t, { repoPath, env });
  const command = hotpush(service, "logs", "--service", "web");
  const { response } = await engine.log("aaa1");
  response.write(logged(1, "it is of-the-con"));
  response.end(Buffer.concat([logged(1, "tainer, or\n"), logged(2, "of-the-project\n")]));
  assert.equal((await command).stdout, "web-1 | it is ***, or\nweb-1 | ***\n");
});

test("a reader that has stopped misses nothing when it goes on", async (t) => {
  const { engine, service } = await startWith(t, web1);
  const command = startCommand(t, service, "logs", "--service", "web", "-f", "--json");
  const { response } = await engine.log("aaa1");
  command.child.kill("SIGSTOP");
  const count = 100_000;
  const lines = Iterator.from(Array(count).keys()).map((index) => logged(1, `${index} ${"x".repeat(200)}\n`));
  const writing = writeAll(response, lines);
  // Too much for the buffers in between: the engine has to wait.
  await once(response, "drain");
  assert.equal((await hotpush(service, "status")).code, 0);
  assert.ok(response.writableLength > 0);
  command.child.kill("SIGCONT");
  await writing;
  await command.waitForLine(new RegExp(`"${count - 1} x`));
  const numbers = command.lines.slice(1).map((line) => Number(JSON.parse(line).line.split(" ")[0]));
  assert.deepEqual(numbers, [...Array(count).keys()]);
});

test("a service that is not there is refused with those that are, and so is a silent engine", async (t) => {
  const { engine, service } = await startWith(t, web1, { id: "ddd4", service: "db", number: 1 });
  const page = await startPage(t, service);
  const path = "/api/projects/default/services";
  const { status, json } = await page.ask(`GET ${path}/wbe/log`);
  assert.equal(status, 404);
  assert.match(String(json.detail), /db, web/);
  assert.deepEqual((await page.ask(`GET ${path}`)).json, { services: ["db", "web"] });
  engine.containers.length = 0;
  assert.equal((await page.ask(`GET ${path}/web/log`)).json.code, "not_found");
});

test("a viewer reads no running log, neither over the API nor on the page", async (t) => {
  const { service } = await startWith(t, web1);
  const page = await startPage(t, service);
  const [viewer, operator] = [
    await signIn(page, service, { role: "viewer" }),
    await signIn(page, service, { role: "operator" }),
  ];
  const paths = ["/projects/default/logs", "/api/projects/default/services/web/log?follow=false"];
  for (const path of paths) assert.equal((await viewer.get(path)).status, 403, path);
  assert.doesNotMatch((await viewer.get("/projects/default")).text, /projects\/default\/logs/);
  assert.match((await operator.get("/projects/default")).text, /projects\/default\/logs/);
  assert.match((await operator.get("/projects/default/logs")).text, /services\/web\/log/);
  assert.equal((await operator.get("/projects/default/logs?service=none")).status, 404);
});
