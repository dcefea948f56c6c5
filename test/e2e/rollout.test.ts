import assert from "node:assert/strict";
import { once } from "node:events";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openLab } from "../lab/lab.ts";
import { type LoadResult, startLoad } from "../lab/load.ts";
import {
  type Behaviour,
  endOf,
  makeProject,
  type RolloutOptions,
  readLive,
  type TestProject,
} from "../lab/project.ts";

const lab = await openLab();
const skip = lab.kind === "ready" ? false : lab.reason;

/** How often the roll-out is killed; every ending between the first and the last step should be hit. */
const kills = Number(process.env.HOTPUSH_KILLS ?? 8);

describe("a roll-out on a real engine, under load", { skip, concurrency: false }, () => {
  let project: TestProject;
  let commit = 0;

  before(async () => {
    project = await makeProject(lab.kind === "ready" ? lab.env : {});
    await deploy("first", "graceful");
  });
  after(() => project.remove());

  /** Writes a version and rolls it out; each has a commit of its own. */
  async function deploy(version: string, behaviour: Behaviour, options: RolloutOptions = {}) {
    await project.write(version, behaviour);
    commit += 1;
    const args = ["--commit", commit.toString(16).padStart(12, "0").padEnd(40, "c"), ...(options.args ?? [])];
    return project.rollOut({ ...options, args });
  }

  /** Does `work` under load and gives what its users saw. */
  async function underLoad(work: () => Promise<void>): Promise<LoadResult> {
    const load = startLoad(project.origin);
    await untilAnswers(load, 100);
    try {
      await work();
      await untilAnswers(load, load.answers.length + 100);
    } catch (error) {
      await load.stop();
      throw error;
    }
    const result = await load.stop();
    assert.deepEqual(
      result.failures.slice(0, 3),
      [],
      `${result.failures.length} of ${result.answers.length} failed`,
    );
    return result;
  }

  test("a good version takes over with no request failed, and what did not change is untouched", async () => {
    const others = await untouched();
    const [old] = await project.containers("app");
    const { versions } = await underLoad(async () => {
      const { code, output } = await deploy("good", "graceful");
      assert.equal(code, 0, output);
      assert.match(output, /^app +\S+ → \S+ +[\d.]+ m?s +[\d.]+ m?s +none$/m);
      assert.match(output, /^single +unchanged/m);
    });
    assert.deepEqual(versions, ["first", "good"]);
    assert.deepEqual(await untouched(), others);
    const now = await project.containers("app");
    assert.equal(now.length, 1);
    assert.notEqual(now[0], old);
    assert.equal(await readLive(project), now[0]?.split(" ")[0]);
  });

  test("an app that dies on SIGTERM loses no request", async () => {
    await deploy("dying", "dies-on-sigterm");
    await underLoad(async () => {
      const { code, output } = await deploy("after-dying", "graceful");
      assert.equal(code, 0, output);
    });
  });

  test("plain compose finds nothing to do after a roll-out", async () => {
    const before = await project.containers("app");
    await project.docker("compose", "up", "--detach");
    assert.deepEqual(await project.containers("app"), before);
  });

  test("a version that never gets healthy is abandoned and the old one serves", async () => {
    await serving("known");
    const { versions } = await underLoad(async () => {
      const { code, output } = await deploy("sick", "sick", { env: { HEALTHY_TIMEOUT: "4s" } });
      assert.equal(code, 1, output);
      assert.match(output, /was not healthy after 4(\.\d)? s \(last: starting\)/);
      assert.match(
        output,
        /version sick is sick: no disk left in the app/,
        "the last health output is shown",
      );
      assert.match(output, /version sick starts/, "the last log lines are shown");
    });
    assert.deepEqual(versions, ["known"]);
    assert.equal((await project.containers("app")).length, 1);
  });

  test("a version that crashes at start is abandoned at once and the old one serves", async () => {
    await serving("known");
    const { versions } = await underLoad(async () => {
      const { code, output } = await deploy("crashing", "crashes");
      assert.equal(code, 1, output);
      assert.match(output, /version crashing cannot start: no database named "shop"/);
    });
    assert.deepEqual(versions, ["known"]);
    assert.equal((await project.containers("app")).length, 1);
  });

  test("after a failure, plain compose does not bring the version that failed", async () => {
    await serving("known");
    await deploy("crashing-too", "crashes");
    await project.docker("compose", "up", "--detach");
    assert.equal(await version(), "known");
  });

  test("a build that fails touches no container", async () => {
    await serving("known");
    const dockerfile = join(project.directory, "app", "Dockerfile");
    const good = await readFile(dockerfile, "utf8");
    const containers = await project.containers("app");
    await appendFile(dockerfile, 'RUN echo "no such module: left-pad" && false\n');
    try {
      await underLoad(async () => {
        const { code, output } = await deploy("unbuildable", "graceful");
        assert.equal(code, 1, output);
        assert.match(output, /The build of app, other failed: .*No container was touched/);
        assert.match(output, /no such module: left-pad/);
      });
    } finally {
      await writeFile(dockerfile, good);
    }
    assert.deepEqual(await project.containers("app"), containers);
  });

  test("a version that is healthy but answers badly through the proxy is rolled back", async () => {
    await serving("known");
    const { code, output } = await deploy("broken", "broken");
    assert.equal(code, 1, output);
    assert.match(output, /did not answer well through the proxy .*status 500/);
    assert.equal((await project.containers("app")).length, 1);
    const { versions } = await underLoad(() => sleep(500));
    assert.deepEqual(versions, ["known"]);
  });

  test("a version that falls with its first requests is rolled back", async () => {
    await serving("known");
    const { code, output } = await deploy("falling", "falls");
    assert.equal(code, 1, output);
    assert.match(
      output,
      /did not answer well through the proxy|was healthy, but fell as soon as it got requests/,
    );
    assert.equal((await project.containers("app")).length, 1);
    assert.equal(await version(), "known");
  });

  test("when one service fails, those replaced before it go back, so that versions belong together", async () => {
    await serving("known");
    const dockerfile = join(project.directory, "other", "Dockerfile");
    const good = await readFile(dockerfile, "utf8");
    const others = await project.containers("other");
    await writeFile(dockerfile, 'FROM debian:trixie-slim\nCMD ["false"]\n');
    try {
      const { versions } = await underLoad(async () => {
        const { code, output } = await deploy("half", "graceful");
        assert.equal(code, 1, output);
        assert.match(output, /app +note +goes back to the old version, because another service failed/);
      });
      assert.deepEqual(versions, ["known", "half"]);
    } finally {
      await writeFile(dockerfile, good);
    }
    assert.equal(await version(), "known");
    assert.deepEqual(await project.containers("other"), others);
  });

  test("asked to stop before the switch, a roll-out removes what it started", async () => {
    await serving("known");
    const containers = await project.containers("app");
    await project.write("stopped", "sick");
    await underLoad(async () => {
      const stopped = project.spawnRollout();
      stopped.stdout?.on("data", (chunk: Buffer) => {
        if (/app +start /.test(chunk.toString())) stopped.kill("SIGTERM");
      });
      const { code, output } = await endOf(stopped);
      assert.equal(code, 1, output);
      assert.match(output, /FAILED: The roll-out was asked to stop/);
    });
    assert.deepEqual(await project.containers("app"), containers);
  });

  test("a service of which two cannot run is recreated, and the output says why and for how long it was away", async () => {
    const before = await project.containers("single");
    await underLoad(async () => {
      const { code, output } = await deploy("known", "graceful", { env: { SETTING: "2" } });
      assert.equal(code, 0, output);
      assert.match(output, /^single .* [\d.]+ m?s \(label hotpush\.rollout=recreate\)$/m);
    });
    assert.notDeepEqual(await project.containers("single"), before);
  });

  test("killed at any moment, the app serves on and the next roll-out heals", {
    timeout: kills * 30_000,
  }, async () => {
    await serving("known");
    await underLoad(async () => {
      for (let round = 1; round <= kills; round += 1) {
        await project.write(`killed-${round}`, "graceful");
        const killed = project.spawnRollout();
        const ending = endOf(killed);
        // The steps lie between 0.5 and 4 s after the start; spread over them rather than repeat one moment.
        await Promise.race([sleep(500 + (3_500 * (round - 1)) / kills), once(killed, "close")]);
        killed.kill("SIGKILL");
        await ending;
        const { code, output } = await deploy(`healed-${round}`, "graceful");
        assert.equal(code, 0, output);
        const containers = await project.containers("app");
        assert.equal(containers.length, 1, `after round ${round}: ${containers.join(", ")}\n${output}`);
        assert.equal(await version(), `healed-${round}`);
      }
    });
  });

  test("three replicas stay three throughout", async () => {
    const three = { env: { REPLICAS: "3" } };
    assert.equal((await deploy("three", "graceful", three)).code, 0);
    assert.equal((await project.containers("app")).length, 3);
    await underLoad(async () => {
      const counting = new AbortController();
      const fewest = countServing(counting.signal);
      const { code, output } = await deploy("three-more", "graceful", three);
      counting.abort();
      assert.equal(code, 0, output);
      assert.equal(await fewest, 3);
    });
    const names = (await project.containers("app")).map((line) => line.split(" ")[0]);
    const live = [
      await readLive(project),
      await readLive(project, "app.2"),
      await readLive(project, "app.3"),
    ];
    assert.deepEqual(live.sort(), names.sort());
    assert.equal((await deploy("one-again", "graceful")).code, 0);
    assert.equal((await project.containers("app")).length, 1);
  });

  test("the previous good version comes back without a build", async () => {
    await serving("earlier");
    await serving("later");
    const { versions } = await underLoad(async () => {
      const { code, output } = await project.rollOut({ args: ["--back"] });
      assert.equal(code, 0, output);
      assert.doesNotMatch(output, / build /);
    });
    assert.deepEqual(versions, ["later", "earlier"]);
  });

  test("prune keeps the live image and the two good ones before it, and takes the others", async () => {
    await serving("kept-1");
    await serving("kept-2");
    await serving("live");
    const { code, output } = await project.hotpush("prune");
    assert.equal(code, 0, output);
    assert.match(output, /^Freed /m);
    const repository = `${project.name}-app`;
    const ids = await project.docker("images", "--quiet", "--no-trunc", repository);
    assert.equal(new Set(ids.split("\n")).size, 3);
    assert.notEqual(await project.docker("images", "--quiet", "debian:trixie-slim"), "", "other images stay");
    assert.equal((await project.rollOut({ args: ["--back"] })).code, 0);
    assert.equal(await version(), "kept-2");
  });

  test("a service that does not exist is named, with those that do", async () => {
    const { code, output } = await project.rollOut({ args: ["ap"] });
    assert.equal(code, 1);
    assert.match(output, /There is no service ap .* It has: app, caddy, other, single\./);
  });

  async function serving(wanted: string): Promise<void> {
    const { code, output } = await deploy(wanted, "graceful");
    assert.equal(code, 0, output);
    assert.equal(await version(), wanted);
  }

  async function version(): Promise<string> {
    const response = await fetch(project.origin, { headers: { connection: "close" } });
    return (await response.text()).split(" ")[0] ?? "";
  }

  async function untouched(): Promise<readonly string[]> {
    const services = await Promise.all(
      ["caddy", "other", "single"].map((service) => project.containers(service)),
    );
    return services.flat();
  }

  /** The smallest number of healthy containers of the app that was seen until `signal`. */
  async function countServing(signal: AbortSignal): Promise<number> {
    let fewest = Number.POSITIVE_INFINITY;
    while (!signal.aborted) {
      const label = "label=com.docker.compose.service=app";
      const filters = ["--filter", `name=${project.name}`, "--filter", label, "--filter", "health=healthy"];
      const names = await project.docker("ps", ...filters, "--format", "{{.Names}}");
      fewest = Math.min(fewest, names.split("\n").filter(Boolean).length);
      await sleep(100);
    }
    return fewest;
  }
});

async function untilAnswers(load: { readonly answers: readonly unknown[] }, count: number): Promise<void> {
  while (load.answers.length < count) await sleep(20);
}
