import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { listenAt } from "../harness/listen.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { advicesIn } from "../lab/first-project.ts";
import { onEngine } from "../lab/on-engine.ts";
import { endOf, untilPrinted } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

/** How often the roll-out is killed, spread over all steps. */
const kills = Number(process.env.HOTPUSH_E2E_KILLS ?? 3);

/** With its child processes, as at a power cut; or alone, while compose continues. */
function kill({ pid = 0 }: ChildProcess, { withCompose }: { readonly withCompose: boolean }): void {
  const children = withCompose ? childrenOf(pid) : [];
  killIfThere(pid);
  // Compose has a process group of its own; other children end quickly.
  for (const child of children) killIfThere(-child);
}

function childrenOf(pid: number): readonly number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  return existsSync(path) ? readFileSync(path, "utf8").split(" ").filter(Boolean).map(Number) : [];
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

onEngine("a roll-out that is cut short on a real engine, under load", (env) => {
  let project: RolledProject;

  before(async () => {
    project = await makeRolledProject(env);
  });
  after(() => project?.remove());

  test("asked to stop before the switch, a roll-out removes what it started", async () => {
    const containers = await project.containers("app");
    await project.write("stopped", "sick");
    await project.underLoad(async () => {
      const stopped = project.spawnRollout();
      const { code, output } = await untilPrinted(stopped, /app +start /, async () => {
        stopped.kill("SIGTERM");
      });
      assert.equal(code, 1, output);
      assert.match(output, /FAILED: The roll-out was asked to stop/);
    });
    assert.deepEqual(await project.containers("app"), containers);
  });

  test("if Caddy stops during a roll-out, the old version stays, and serves when Caddy is back", async () => {
    const containers = await project.containers("app");
    await project.write("unseen", "slow-start");
    const rollout = project.spawnRollout({ env: { DRAIN: "2s" } });
    const { code, output } = await untilPrinted(rollout, /app +start /, () =>
      project.docker("kill", `${project.name}-caddy-1`),
    );
    assert.equal(code, 1, output);
    assert.match(output, /did not answer well through the proxy/);
    assert.match(output, /Caddy did not answer on admin\.sock in the live directory: waited 2 s instead/);
    assert.deepEqual(await project.containers("app"), containers);
    await project.docker("compose", "start", "caddy");
    await until("the old version", async () => (await project.version().catch(() => "")) === "first");
  });

  test("killed between its switch and its check, a version that answers badly does not stay", async () => {
    await project.serving("proved");
    await project.write("unproved", "broken");
    const killed = project.spawnRollout();
    await untilPrinted(killed, /app +switch /, async () => kill(killed, { withCompose: false }));
    const { code, output } = await project.rollOut();
    assert.equal(code, 1, output);
    assert.match(output, /An earlier roll-out had no time to see that: the old version serves again/);
    assert.match(output, /app +roll back|did not answer well through the proxy/);
    assert.equal(await project.version(), "proved");
  });

  test("what the engine does not remove goes by the advice, or by the next roll-out", async (t) => {
    await project.serving("proved");
    const removal = /^DELETE .*\/containers\//;
    const DOCKER_HOST = await refusingEngine(t, (request) => removal.test(request), env.DOCKER_HOST);
    const rollOut = () => project.rollOut({ args: ["--no-build", "app"], env: { DOCKER_HOST } });
    for (const leave of [["up", "--detach", "--no-recreate", "--no-deps", "--scale", "app=2"], ["kill"]]) {
      await project.docker("compose", ...leave, "app");
      const left = (await project.containers("app")).map((container) => container.split(" ")[0]);
      const refused = await rollOut();
      assert.equal(refused.code, 1, refused.output);
      const [advice = "", ...more] = advicesIn(refused.output);
      assert.ok(left.some((name) => advice === `docker rm --force ${name}`));
      assert.deepEqual(more, []);
      const [program, ...args] = advice.split(" ");
      assert.equal(program, "docker");
      await project.docker(...args);
      const { code, output } = await rollOut();
      assert.equal(code, 0, output);
      assert.equal(await project.version(), "proved");
    }
    // The old container stays after its traffic has gone: the next roll-out removes it, as the note says.
    await project.write("busy", "graceful");
    await project.docker("compose", "build", "app");
    const rolled = await rollOut();
    assert.equal(rolled.code, 0, rolled.output);
    assert.match(
      rolled.output,
      /could not be removed, the next roll-out tries again: .*device or resource busy/,
    );
    assert.equal((await project.containers("app")).length, 2);
    assert.equal((await project.rollOut({ args: ["--no-build", "app"] })).code, 0);
    assert.equal((await project.containers("app")).length, 1);
    assert.equal(await project.version(), "busy");
  });

  test("killed at any moment, the app keeps serving and the next roll-out recovers", {
    timeout: 60_000 + kills * 30_000,
  }, async () => {
    await project.underLoad(async () => {
      const startedMs = performance.now();
      assert.equal((await project.deploy("whole", "graceful")).code, 0);
      const wholeMs = performance.now() - startedMs;
      for (let round = 1; round <= kills; round += 1) {
        await project.write(`killed-${round}`, "graceful");
        const killed = project.spawnRollout();
        const ending = endOf(killed);
        // Spread over the whole roll-out.
        await Promise.race([sleep((wholeMs * (round - 0.5)) / kills), once(killed, "close")]);
        kill(killed, { withCompose: round % 2 === 0 });
        await ending;
        const { code, output } = await project.deploy(`healed-${round}`, "graceful");
        assert.equal(code, 0, output);
        const containers = await project.containers("app");
        assert.equal(containers.length, 1, `after round ${round}: ${containers.join(", ")}\n${output}`);
        assert.equal(await project.version(), `healed-${round}`);
      }
    });
  });
});

/**
 * The engine at `dockerHost` until the test ends, but for the requests that it refuses, as one does whose disk is at fault.
 *
 * @param isRefused by method and path
 * @returns its own DOCKER_HOST
 */
async function refusingEngine(
  scope: Scope,
  isRefused: (request: string) => boolean,
  dockerHost: string = "unix:///var/run/docker.sock",
): Promise<string> {
  const socketPath = dockerHost.replace("unix://", "");
  const server = createServer(async (asked, response) => {
    const { method, url: path, headers } = asked;
    if (isRefused(`${method} ${path}`)) {
      response.writeHead(500).end(JSON.stringify({ message: "device or resource busy" }));
      return;
    }
    // In one piece: the engine may answer, and close, before it has read a body that comes later.
    const body = await buffer(asked);
    const passed = request({ socketPath, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    passed.end(body);
  });
  return `unix://${await listenAt(scope, server, join(temporaryDirectory(scope), "docker.sock"))}`;
}
