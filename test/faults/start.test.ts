import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Delivery, deliver, githubPush } from "../harness/delivery.ts";
import { injectFault, straced } from "../harness/processes.ts";
import { readRecorded } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import { type RunningService, startService } from "../harness/service.ts";
import { linesOf, temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** libuv starts a process by `clone`, and threads by `clone3`, which keeps working. */
const forks = "clone,fork,vfork";
const countingScript = '#!/bin/sh\necho "$2" >>"$REPO_PATH/deployed"\n';

for (const error of ["EAGAIN", "ENOMEM"]) {
  test(
    `while no process can be started (${error}) a deployment stays queued, and it runs once one can`,
    needs("strace", "root"),
    async (t) => {
      const service = await startService(t, { script: countingScript });
      const endFault = await injectFault(t, service.child.pid ?? 0, `${forks}:error=${error}`);
      assert.equal((await deliver(service.url, githubPush())).status, 202);
      await service.log.waitFor(({ event }) => event === "deployment.waits");
      await until("it is queued", () => stateOf(service.statePath, 1).state === "queued");
      assert.equal(service.child.exitCode, null);
      await endFault();
      await assertRanOnce(service, 1);
    },
  );
}

test(
  "a service that cannot start processes records pushes, and deploys them once it can",
  needs("strace"),
  async (t) => {
    const service = await startService(t, {
      script: countingScript,
      wrapper: straced(`${forks}:error=EAGAIN:when=1..4`),
    });
    assert.equal((await deliver(service.url, githubPush())).status, 202);
    await assertRanOnce(service, 1);
  },
);

test("a deployment runs once if its lock could not be taken at first", async (t) => {
  const directory = temporaryDirectory(t);
  const fails = `mkdir ${directory}/failed 2>/dev/null && echo "flock: fork failed" >&2 && exit 71`;
  const isAsked = 'tr "\\0" " " <"/proc/$PPID/cmdline" | grep -q supervisor.sh';
  writeScript(
    join(directory, "flock"),
    `#!/bin/sh\nif ${isAsked}; then ${fails}; fi\nexec /usr/bin/flock "$@"\n`,
  );
  const service = await startService(t, {
    script: countingScript,
    env: { PATH: `${directory}:${process.env.PATH}` },
  });
  await deliver(service.url, githubPush());
  const { msg } = await service.log.waitFor(({ event }) => event === "deployment.waits");
  assert.match(String(msg), /its lock or the pipe for its output could not be set up: flock: fork failed/);
  await assertRanOnce(service, 1);
});

/** The first takes the runner's lock. */
for (const [nth, what] of [
  ["2..3", "asking whether it still runs"],
  ["3..4", "waiting for its end"],
] as const) {
  test(
    `a script that outlived its service is adopted even if a process for ${what} fails to start at first`,
    needs("strace"),
    async (t) => {
      const first = await startService(t, { script: `${countingScript}sleep 2\n` });
      await deliver(first.url, githubPush());
      await until("the script runs", () => deployedBy(first).length === 1);
      await first.end("SIGKILL");
      const service = await first.again({ wrapper: straced(`${forks}:error=EAGAIN:when=${nth}`) });
      await assertRanOnce(service, 1);
      assert.equal(service.child.exitCode, null);
    },
  );
}

test("a shortage of descriptors refuses a push, and ends nothing", needs("prlimit"), async (t) => {
  const spare = 40;
  const idle = await startService(t);
  const mostDescriptors = descriptorsOf(idle) + spare;
  await idle.end();
  const service = await startService(t, {
    script: countingScript,
    wrapper: ["prlimit", `--nofile=${mostDescriptors}:${mostDescriptors}`],
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const knock = { headers: {}, body: "" };
  assert.equal(
    await sendOver(agent, service, knock),
    415,
    "a connection is open before descriptors are short",
  );
  const letGo = await takeDescriptors(t, service, mostDescriptors);
  assert.equal(await sendOver(agent, service, githubPush()), 503);
  assert.equal(service.child.exitCode, null);
  letGo();
  await until("a push is taken", async () => (await sendOver(agent, service, githubPush())) === 202);
  await assertRanOnce(service, 1);
});

async function assertRanOnce(service: RunningService, id: number): Promise<void> {
  assert.equal((await service.log.waitForEnding(id)).event, "deployment.succeeded");
  assert.equal(deployedBy(service).length, 1);
  assert.deepEqual({ ...stateOf(service.statePath, id) }, { state: "succeeded", attempts: 1 });
}

function stateOf(statePath: string, id: number): Readonly<Record<string, unknown>> {
  const sql = `SELECT state, attempts FROM deployments WHERE id = ${id}`;
  return readRecorded(statePath, ({ all }) => all(sql)[0] ?? {});
}

function deployedBy({ repoPath }: RunningService): string[] {
  return linesOf(join(repoPath, "deployed"));
}

function descriptorsOf({ child }: RunningService): number {
  return readdirSync(`/proc/${child.pid}/fd`).length;
}

/** Opens connections until the service has no descriptor left for one more. */
async function takeDescriptors(t: TestContext, service: RunningService, most: number): Promise<() => void> {
  const sockets: Socket[] = [];
  const letGo = () => {
    for (const socket of sockets) socket.destroy();
  };
  t.after(letGo);
  await until("no descriptor is left", () => {
    const socket = connect(service.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    sockets.push(socket);
    return descriptorsOf(service) >= most;
  });
  return letGo;
}

function sendOver(agent: Agent, { port }: RunningService, { headers, body }: Delivery): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { agent, port, host: "127.0.0.1", method: "POST", path: "/webhook", headers },
      (reply) => {
        reply.resume().on("end", () => resolve(reply.statusCode ?? 0));
      },
    );
    sent.on("error", reject).end(body);
  });
}
