import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { inspectContainer } from "../../../src/platform/docker/containers.ts";
import { type Engine, EngineRefusal } from "../../../src/platform/docker/engine.ts";
import { diagnose } from "../../../src/platform/docker/health.ts";
import { type Task, updateFailure } from "../../../src/rollout/stack.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

const environment = [
  "PATH=/usr/bin",
  "API_TOKEN=token of the app",
  "DB=Server=db;Password=secret of the db;",
  "DB_PASSWORD_FILE=/etc/app/password",
];
const log = "token of the app, secret of the db, secret of a file, secret of a mount, /usr/bin\n";
const redactedLog = "***, ***, ***, ***, /usr/bin";

test("the log and health output of a failed container hide its secrets", async (t) => {
  const engine = await engineWithContainer(t);
  const container = await inspectContainer(engine, "abc");
  assert.ok(container);
  const { problem } = await diagnose(engine, container, "is unhealthy");
  const [healthTitle, health, logTitle, logLine] = problem.evidence ?? [];
  assert.deepEqual([healthTitle, logTitle], ["Last health check:", "Last log lines:"]);
  assert.deepEqual([health, logLine], [`  sick: ${redactedLog}`, `  ${redactedLog}`]);
});

test("the last health check that said something is shown, or why none could run", async (t) => {
  const cannotStart = "OCI runtime exec failed: exec failed";
  for (const outputs of [["sick", ""], ["sick", cannotStart], [cannotStart]]) {
    const engine = await engineWithContainer(t, outputs);
    const container = await inspectContainer(engine, "abc");
    assert.ok(container);
    const { problem } = await diagnose(engine, container, "is unhealthy");
    assert.deepEqual(problem.evidence?.slice(0, 2), ["Last health check:", `  ${outputs[0]}`]);
  }
});

test("a task that waits for a node is named with the reason; a failed one's log hides its secrets", async () => {
  const engine = engineWith((path) => (path.startsWith("/tasks/") ? log : null));
  const task = {
    ID: "t1",
    CreatedAt: "",
    ServiceID: "s1",
    Slot: 1,
    DesiredState: "running",
    Spec: { ContainerSpec: { Env: ["API_TOKEN=token of the app"] } },
    Status: { State: "failed", ContainerStatus: { ContainerID: "c1" } },
  };
  const spec = { Name: "shop_app", TaskTemplate: {} };
  const now = { ID: "s1", Version: { Index: 1 }, Spec: spec, tasks: [task as Task] };
  const failureOf = (tasks: typeof now.tasks) =>
    updateFailure(engine, { name: "app" }, "It failed.", { before: null, now: { ...now, tasks } });
  const waiting = { ...task, Status: { State: "pending", Err: "no suitable node" } };
  assert.equal((await failureOf([waiting])).message, "It failed. Task app.1.t1 waits: no suitable node.");
  const { problem } = await failureOf([task]);
  assert.match(problem.evidence?.join("\n") ?? "", /^Last log lines:\n {2}\*\*\*, secret of the db/);
});

/** An engine that knows one container, which has a secret in each place. */
async function engineWithContainer(t: TestContext, outputs = [`sick: ${log}`]): Promise<Engine> {
  const directory = temporaryDirectory(t);
  const mounts = Object.entries({
    "/run/secrets/key": "secret of a mount\n",
    "/etc/app/password": "secret of a file\n",
  }).map(([Destination, text], index) => {
    const Source = join(directory, String(index));
    writeFileSync(Source, text);
    return { Type: "bind", Source, Destination };
  });
  const container = {
    Id: "abc",
    Name: "/shop-app-1",
    Mounts: mounts,
    Config: { Env: environment },
    State: { Status: "running", Health: { Status: "unhealthy", Log: outputs.map((Output) => ({ Output })) } },
  };
  return engineWith((path) => (path.includes("/logs?") ? log : JSON.stringify(container)));
}

function engineWith(textOf: (path: string) => string | null): Engine {
  const answer = async (path: string) => {
    const text = textOf(path);
    if (text === null) throw new EngineRefusal(404, "none");
    return Buffer.from(text);
  };
  return { get: answer, post: answer, delete: answer };
}
