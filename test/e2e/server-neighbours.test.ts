import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { type Answer, fastMixture, type Load, startLoad } from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";
import {
  type LabProject,
  readLiveFile,
  type ServerLab,
  startServer,
  untilServed,
} from "../lab/server-lab.ts";

/** Between two requests of a client: about 400 requests a second at each of the two neighbours. */
const pauseMs = 25;
/** Half of what the slow requests of the load take. */
const longestOpeningMs = 1_000;

function declare(env: NodeJS.ProcessEnv): void {
  let server: ServerLab;
  let neighbours: readonly LabProject[];
  let blog: LabProject;

  before(async () => {
    server = await startServer(env);
    neighbours = ["news", "shop"].map(server.addProject);
    await server.untilJoined(["news", "shop"]);
    for (const project of neighbours) await project.compose("up", "--detach", "--wait");
    await Promise.all(neighbours.map(untilServed));
  });
  after(() => server?.remove());

  test("a project that is added costs its neighbours no more than one reload", async () => {
    const lost = await lostDuring(async () => {
      blog = server.addProject("blog");
      await server.untilJoined(["blog", "news", "shop"]);
      await blog.compose("up", "--detach", "--wait");
      await untilServed(blog);
    });
    assertOneReload(lost);
  });

  test("deploying, rolling back and stopping a project costs its neighbours nothing", async () => {
    const seeded = readLiveFile(blog);
    const lost = await lostDuring(async () => {
      for (const version of ["second", "third"]) {
        const { code, output } = await blog.deploy(version);
        assert.equal(code, 0, output);
      }
      const deployed = readLiveFile(blog);
      const { code, output } = await blog.rollBack();
      assert.equal(code, 0, output);
      assert.equal(new Set([seeded, deployed, readLiveFile(blog)]).size, 3);
      await blog.compose("down", "--timeout", "1");
    });
    assert.deepEqual(lost, []);
  });

  test("a project that is removed costs its neighbours no more than one reload", async () => {
    const lost = await lostDuring(async () => {
      blog.forget();
      await server.untilJoined(["news", "shop"]);
      await until("the end of its site", async () => (await fetch(blog.origin)).status === 404);
    });
    assertOneReload(lost);
    assert.deepEqual((await server.status()).serverFaults, []);
  });

  /** Does `work` under load on both neighbours. @returns what their clients have not got */
  async function lostDuring(work: () => Promise<void>): Promise<readonly Answer[]> {
    const loads = neighbours.map(({ origin }) => startLoad(origin, pauseMs));
    try {
      await untilAnswered(loads);
      await work();
      await untilAnswered(loads);
    } finally {
      await Promise.all(loads.map(({ stop }) => stop()));
    }
    const ends = await Promise.all(loads.map(({ stop }) => stop()));
    return ends.flatMap(({ failures }) => failures);
  }
}

/**
 * A reload can cost each client the connection that it is just opening, but next to none if the machine has time:
 * docs/how-it-works.md has figures. A request that is being answered goes on.
 */
function assertOneReload(lost: readonly Answer[]): void {
  const shown = JSON.stringify(lost);
  assert.ok(lost.length <= 2 * fastMixture.reduce((sum, { count }) => sum + count, 0), shown);
  assert.ok(
    lost.every(({ latencyMs }) => latencyMs < longestOpeningMs),
    shown,
  );
  assert.ok(
    lost.every(({ failure }) => /socket hang up|ECONNRESET/.test(failure ?? "")),
    shown,
  );
}

/** Waits until each has got a hundred more answers. */
async function untilAnswered(loads: readonly Load[]): Promise<void> {
  const wanted = loads.map(({ answers }) => answers.length + 100);
  await until("answers of the neighbours", () =>
    loads.every(({ answers }, index) => answers.length >= (wanted[index] ?? 0)),
  );
}

// The engine has only one server.
onEngine("the neighbours of a project on the server", declare, "one server");
