import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { inspectContainer } from "../../../src/platform/docker/containers.ts";
import { connectEngine, type Engine } from "../../../src/platform/docker/engine.ts";
import { diagnose } from "../../../src/platform/docker/health.ts";
import { updateFailure } from "../../../src/rollout/stack.ts";
import { listenAt } from "../../harness/listen.ts";
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
  const { problem } = await diagnose(engine, container, { kind: "unhealthy" });
  const [healthTitle, health, logTitle, logLine] = problem.evidence ?? [];
  assert.deepEqual([healthTitle, logTitle], ["Last health check:", "Last log lines:"]);
  assert.deepEqual([health, logLine], [`  sick: ${redactedLog}`, `  ${redactedLog}`]);
});

test("the log of a failed task on any node does not show its secrets", async (t) => {
  const engine = await engineWith(t, (path) => (path.startsWith("/tasks/") ? log : null));
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
  const now = { ID: "s1", Version: { Index: 1 }, Spec: spec, tasks: [task] };
  const { problem } = await updateFailure(engine, { name: "app" }, "It failed.", { before: null, now });
  assert.match(problem.evidence?.join("\n") ?? "", /^Last log lines:\n {2}\*\*\*, secret of the db/);
});

/** An engine that knows one container, which has a secret in each place. */
async function engineWithContainer(
  t: TestContext,
  healthOutputs: readonly string[] = [`sick: ${log}`],
): Promise<Engine> {
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
    Image: "sha256:1",
    RestartCount: 0,
    Mounts: mounts,
    Config: { Image: "shop-app", Labels: {}, Env: environment },
    State: {
      Status: "running",
      ExitCode: 0,
      StartedAt: "2026-01-01T00:00:00Z",
      Health: { Status: "unhealthy", Log: healthOutputs.map((Output) => ({ Output })) },
    },
  };
  return engineWith(t, (path) => (path.includes("/logs?") ? log : JSON.stringify(container)));
}

async function engineWith(t: TestContext, answer: (path: string) => string | null): Promise<Engine> {
  const server = createServer(({ url = "" }, response) => {
    const text = answer(url.replace(/^\/v[\d.]+/, ""));
    response.writeHead(text === null ? 404 : 200).end(text ?? '{"message":"none"}');
  });
  const path = join(temporaryDirectory(t), "docker.sock");
  return connectEngine(`unix://${await listenAt(t, server, path)}`);
}
