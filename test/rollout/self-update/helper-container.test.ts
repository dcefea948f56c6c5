import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { connectEngine, type Engine } from "../../../src/platform/docker/engine.ts";
import { startHelper } from "../../../src/rollout/self-update/helper-container.ts";
import { replaceByHelper } from "../../../src/rollout/self-update/replace-container.ts";
import { writeReplacementRequest } from "../../../src/rollout/self-update/replacement-request.ts";
import { listenAt } from "../../harness/listen.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

const own = { id: "a".repeat(64), project: "shop", service: "hotpush" };
const helper = { name: "shop-helper", project: "shop", args: ["rollout"] };

test("removes the helper of an earlier replacement before it starts a new one", async (t) => {
  const { engine, requests } = await engineWith(t, { status: "exited" });
  await startHelper(engine, own, helper, {});
  assert.deepEqual(requests, ["DELETE /containers/shop-helper", "POST /containers/create", start]);
});

test("leaves a running helper alone and starts no second one", async (t) => {
  const { engine, requests } = await engineWith(t, { status: "running" });
  await startHelper(engine, own, helper, {});
  assert.deepEqual(requests, []);
});

test("waits for the same helper again if the connection to the engine breaks", async (t) => {
  const { engine, requests } = await engineWith(t, { status: null, brokenWaits: 1 });
  const context = {
    statePath: temporaryDirectory(t),
    scriptEnv: {},
    redact: (text: string) => text,
    close: async () => {},
    log: pino({ enabled: false }),
  };
  const request = writeReplacementRequest(context.statePath, { old: own.id, helper });
  const look = () => replaceByHelper(context, engine, own, request, helper);
  await assert.rejects(look, /did not answer/);
  await look();
  const wait = "POST /containers/shop-helper/wait";
  const removal = "DELETE /containers/shop-helper";
  assert.deepEqual(requests, [removal, "POST /containers/create", start, wait, wait, removal]);
});

test("a helper has no service labels, even if compose built its image", async () => {
  const made: unknown[] = [];
  const engine: Engine = {
    get: async () => Buffer.from(JSON.stringify(inspected({ status: "exited" }))),
    post: async (path, body) => {
      if (path.startsWith("/containers/create")) made.push(body);
      return Buffer.alloc(0);
    },
    delete: async () => Buffer.alloc(0),
  };
  await startHelper(engine, own, helper, {});
  const [{ Labels }] = made as [{ readonly Labels: unknown }];
  assert.deepEqual(Labels, { "com.docker.compose.project": "", "com.docker.compose.service": "" });
});

const start = "POST /containers/shop-helper/start";

interface HelperState {
  /** Null if there is none of this name. */
  status: "running" | "exited" | null;
  brokenWaits?: number;
}

/** A fake engine on a socket, with a helper in `state`, and the requests it received that change something or wait. */
async function engineWith(
  t: TestContext,
  state: HelperState,
): Promise<{ readonly engine: Engine; readonly requests: readonly string[] }> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const call = `${request.method} ${request.url?.split("?")[0]}`;
    if (request.method !== "GET") requests.push(call);
    answer(call, request, response, state);
  });
  const path = await listenAt(t, server, join(temporaryDirectory(t), "docker.sock"));
  return { engine: connectEngine(`unix://${path}`), requests };
}

function answer(call: string, request: IncomingMessage, response: ServerResponse, state: HelperState): void {
  const isOwn = call.includes(own.id);
  if (!isOwn && state.status === null && !["POST /containers/create", start].includes(call)) {
    response.writeHead(404).end('{"message":"No such container"}');
    return;
  }
  if (call.endsWith("/wait") && (state.brokenWaits ?? 0) > 0) {
    state.brokenWaits = (state.brokenWaits ?? 0) - 1;
    request.socket.destroy();
    return;
  }
  if (call === "POST /containers/create" || call.startsWith("DELETE")) state.status = null;
  if (call === start) state.status = "running";
  response.end(JSON.stringify({ ...inspected(state), StatusCode: 1 }));
}

function inspected({ status }: HelperState) {
  return {
    Id: own.id,
    Name: "/shop-helper",
    Image: "sha256:1",
    RestartCount: 0,
    Config: { Image: "hotpush", Labels: null, User: "", Env: null },
    State: { Status: status ?? "running", ExitCode: 0, StartedAt: "2026-01-01T00:00:00Z" },
    HostConfig: { GroupAdd: null, Tmpfs: null, ReadonlyRootfs: false },
    NetworkSettings: { Networks: {} },
  };
}
