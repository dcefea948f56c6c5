import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { countingLines } from "../../src/rollout/requests.ts";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import {
  type Ending,
  endOf,
  makeProject,
  outputOf,
  readLive,
  type TestProject,
  untilPrinted,
} from "../lab/project.ts";
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

onEngine("a roll-out, and one that is cut short, on a real engine, under load", (env) => {
  let project: RolledProject;
  let second: TestProject;

  before(async () => {
    project = await makeRolledProject(env);
  });
  after(async () => {
    await second?.remove();
    await project?.remove();
  });

  test("a good version takes over with no request failed, and unchanged services are untouched", async () => {
    const others = await untouched();
    const [old] = await project.containers("app");
    const { versions } = await project.underLoad(async () => {
      const output = await outputOf(project.deploy("good", "graceful"));
      assert.match(output, /^ +app +rolled +\S+ → \S+, healthy after [\d.]+ m?s, drained in [\d.]+ m?s$/m);
      assert.match(output, /^ +single +unchanged/m);
      assert.match(output, /The requests were not counted/);
      for (const line of countingLines) assert.ok(output.includes(`\n${line}\n`), line);
    });
    assert.deepEqual(versions, ["first", "good"]);
    assert.deepEqual(await untouched(), others);
    const now = await project.containers("app");
    assert.equal(now.length, 1);
    assert.notEqual(now[0], old);
    assert.equal(await readLive(project), now[0]?.split(" ")[0]);
  });

  test("plain compose finds nothing to do after a roll-out", async () => {
    const before = await project.containers("app");
    await project.docker("compose", "up", "--detach");
    assert.deepEqual(await project.containers("app"), before);
  });

  test("a service that cannot run twice is recreated; the output says why and for how long it was down", async () => {
    const before = await project.containers("single");
    await project.underLoad(async () => {
      const output = await outputOf(project.deploy("known", "graceful", { env: { SETTING: "2" } }));
      assert.match(output, /^ +single +recreated .* [\d.]+ m?s \(label hotpush\.rollout=recreate\)$/m);
    });
    assert.notDeepEqual(await project.containers("single"), before);
  });

  test("the previous good version comes back without a build", async () => {
    await project.serving("later");
    const { versions } = await project.underLoad(async () => {
      const output = await outputOf(project.rollOut({ args: ["--back"] }));
      assert.doesNotMatch(output, / build /);
    });
    assert.deepEqual(versions, ["later", "known"]);
  });

  test("prune keeps the live image and the two good ones before it, and removes the others", async () => {
    await project.serving("kept");
    await project.serving("live");
    assert.ok((await imagesOfApp()).size > 3);
    const nameless = await buildNameless(project.name);
    const foreign = await buildNameless("somebody-else");
    const output = await outputOf(project.hotpush("prune"));
    assert.match(output, /^Freed /m);
    assert.equal((await imagesOfApp()).size, 3);
    assert.ok(!(await isThere(nameless)), "an image of this project that has lost its name goes");
    assert.ok(await isThere(foreign), "one of another project stays");
    assert.ok(await isThere("debian:trixie-slim"), "other images stay");
    await project.docker("rmi", foreign);
    assert.equal((await project.rollOut({ args: ["--back"] })).code, 0);
    assert.equal(await project.version(), "kept");
  });

  test("with --prune, old images go meanwhile, but not the tag of a commit that changed none", async () => {
    await project.serving("three");
    // The version is not recorded yet, so one version more stays than with a prune afterwards.
    const output = await outputOf(project.deploy("three", "graceful", { args: ["--prune"] }));
    assert.match(output, / prune .* removed, /);
    const commit = /^Rolling out \S+ at (\w+)/m.exec(output)?.[1];
    assert.ok(await isThere(`${project.name}-app:${commit}`), output);
  });

  test("prune keeps the image of a service in an inactive profile, even if its env file is missing", async () => {
    const backup = { build: "other", profiles: ["backup"], env_file: "backup.env" };
    const override = join(project.directory, "compose.override.yaml");
    await writeFile(override, JSON.stringify({ services: { backup } }));
    await writeFile(join(project.directory, "backup.env"), "");
    await project.docker("compose", "--profile", "backup", "build", "backup");
    await rm(join(project.directory, "backup.env"));
    const output = await outputOf(project.hotpush("prune"));
    assert.ok(await isThere(`${project.name}-backup`), output);
    await rm(override);
    assert.equal((await project.hotpush("prune")).code, 0);
    assert.ok(!(await isThere(`${project.name}-backup`)), "without the profile, nothing needs it");
  });

  test("an unknown service is named, with the known ones", async () => {
    const { code, output } = await project.rollOut({ args: ["ap"] });
    assert.equal(code, 1);
    assert.match(output, /There is no service ap .* It has: app, caddy, single, other\./);
  });

  test("asked to stop before the switch, a roll-out removes what it started", async () => {
    await project.serving("known");
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
    const output = await outputOf(
      untilPrinted(rollout, /app +start /, () => project.docker("kill", `${project.name}-caddy-1`)),
      1,
    );
    assert.match(output, /did not answer well through the proxy/);
    assert.match(output, /Caddy did not answer on admin\.sock in the live directory: waited 2 s instead/);
    assert.deepEqual(await project.containers("app"), containers);
    await project.docker("compose", "start", "caddy");
    await until("the old version", async () => (await project.version().catch(() => "")) === "known");
  });

  test("killed between its switch and its check, a version that answers badly does not stay", async () => {
    await project.serving("proved");
    await project.write("unproved", "broken");
    const killed = project.spawnRollout();
    await untilPrinted(killed, /app +switch /, async () => kill(killed, { withCompose: false }));
    const output = await outputOf(project.rollOut(), 1);
    assert.match(output, /An earlier roll-out had no time to see that: going back to the old version/);
    assert.match(output, /app +roll back|did not answer well through the proxy/);
    assert.equal(await project.version(), "proved");
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
        const output = await outputOf(project.deploy(`healed-${round}`, "graceful"));
        const containers = await project.containers("app");
        assert.equal(containers.length, 1, `after round ${round}: ${containers.join(", ")}\n${output}`);
        assert.equal(await project.version(), `healed-${round}`);
      }
    });
  });

  test("a live file that names the other project's container is refused before any change", async () => {
    second = await makeNeighbour();
    const live = await readLive(project);
    const { versions } = await project.underLoad(async () => refused(await rollOutSecond(), live));
    assert.equal(versions.length, 1);
    assert.equal(await readLive(project), live);
  });

  test("a live file is replaced once the other project is down, as the refusal advises", async () => {
    const [, advice = ""] = /gone for good: docker (.+ down)\.\s/.exec((await rollOutSecond()).output) ?? [];
    await project.docker(...advice.split(" "));
    await outputOf(rollOutSecond());
    const [name] = await second.containerNames("app");
    assert.equal(await readLive(project), name);
  });

  /** A project with the same volume of live files and a service of the same name. This one's Caddy reads the files. */
  async function makeNeighbour(): Promise<TestProject> {
    const made = await makeProject(env);
    await made.write("second", "graceful");
    const volumes = { live: { name: `${project.name}_live`, external: true } };
    const services = { app: { labels: { "hotpush.check": "" } }, caddy: { profiles: ["none"] } };
    await writeFile(join(made.directory, "compose.override.yaml"), JSON.stringify({ services, volumes }));
    return made;
  }

  /** The volume belongs to the first project, so Hotpush gets its path from the test. */
  async function rollOutSecond(): Promise<Ending> {
    return second.rollOut({ env: { HOTPUSH_LIVE_PATH: await project.livePath() } });
  }

  async function refused({ code, output }: Ending, name: string): Promise<void> {
    assert.equal(code, 1, output);
    const told = `FAILED: The live file \\S+/app of the project ${second.name} names ${name}, a container of the project ${project.name}`;
    assert.match(output, new RegExp(told));
    assert.doesNotMatch(output, / build /);
    assert.deepEqual(await second.containers("app"), []);
  }

  async function untouched(): Promise<readonly string[]> {
    const services = await Promise.all(
      ["caddy", "other", "single"].map((service) => project.containers(service)),
    );
    return services.flat();
  }

  /** Makes an untagged image, as a build leaves it after the next one. @returns its id */
  async function buildNameless(owner: string): Promise<string> {
    const directory = await mkdtemp(join(tmpdir(), "hotpush-nameless-"));
    await writeFile(join(directory, "Dockerfile"), `FROM debian:trixie-slim\nENV OWNER=${owner}\n`);
    const label = `com.docker.compose.project=${owner}`;
    const id = await project.docker("build", "--quiet", "--label", label, directory);
    await rm(directory, { recursive: true });
    return id;
  }

  function isThere(image: string): Promise<boolean> {
    return project.docker("image", "inspect", image).then(
      () => true,
      () => false,
    );
  }

  async function imagesOfApp(): Promise<ReadonlySet<string>> {
    const ids = await project.docker("images", "--quiet", "--no-trunc", `${project.name}-app`);
    return new Set(ids.split("\n").filter(Boolean));
  }
});
