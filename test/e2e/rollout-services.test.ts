import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { endOf, eventsIn, outputOf, type RolloutOptions, untilPrinted } from "../lab/project.ts";
import { type Registry, startRegistry } from "../lab/registry.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("services of other kinds, and side by side, on a real engine", (env) => {
  let project: RolledProject;
  let registry: Registry;

  before(async () => {
    registry = await startRegistry();
    project = await makeRolledProject(env);
  });
  after(async () => {
    await project?.remove();
    registry?.close();
  });

  test("images that are not built here are pulled again only with --pull", async () => {
    const image = `${registry.host}/cache:1`;
    await push(image, "one");
    await project.alsoHas({ cache: { image, init: true } });
    const [, old] = [await project.rollOut(), await project.containers("cache")];
    await push(image, "two");
    await project.docker("tag", `${project.name}-cache:one`, image);
    assert.match((await project.rollOut()).output, /^ +cache +unchanged/m);
    const output = await outputOf(project.rollOut({ args: ["--pull", "cache"] }));
    assert.match(output, / pull .* cache$/m);
    assert.notDeepEqual(await project.containers("cache"), old);
  });

  test("an image that cannot be pulled ends the roll-out before any change", async () => {
    const containers = await project.containers("app");
    await project.alsoHas({ cache: { image: `${registry.host}/nowhere:1` } });
    const output = await outputOf(project.deploy("unpulled", "graceful"), 1);
    assert.match(output, /FAILED: The pull of cache failed: .* No new container was started/);
    assert.deepEqual(await project.containers("app"), containers);
    await project.alsoHas({});
  });

  test("a network that compose would recreate ends the roll-out before any change", async () => {
    await project.serving("known");
    const services = { kept: { build: "app", labels: { "hotpush.rollout": "recreate" } } };
    await project.alsoHas(services);
    await outputOf(project.rollOut());
    const both = async () => [await project.containers("app"), await project.containers("kept")];
    const containers = await both();
    const networks = { default: { labels: { changed: "yes" } } };
    await writeFile(join(project.directory, "compose.override.yaml"), JSON.stringify({ networks, services }));
    await project.underLoad(async () => {
      const output = await outputOf(project.deploy("networked", "graceful"), 1);
      assert.match(
        output,
        /FAILED: The network \S+_default must be recreated, .*docker compose down && docker compose up -d\./,
      );
    });
    assert.deepEqual(await both(), containers);
    await project.alsoHas({});
  });

  test("an anonymous volume is passed on to the new container, and the output says why it is recreated", async () => {
    const keeper = (setting: string) => ({
      image: "debian:trixie-slim",
      command: ["sleep", "infinity"],
      init: true,
      volumes: ["/notes"],
      environment: { SETTING: setting },
    });
    await project.alsoHas({ keeper: keeper("1") });
    await project.rollOut({ args: ["keeper"] });
    const inIt = ["compose", "exec", "--no-TTY", "keeper", "sh", "-c"];
    await project.docker(...inIt, "echo kept >/notes/note");
    await project.alsoHas({ keeper: keeper("2") });
    const output = await outputOf(project.rollOut({ args: ["keeper"] }));
    assert.match(output, /keeper +recreate .* two cannot run: anonymous volume \/notes/);
    assert.equal(await project.docker(...inIt, "cat /notes/note; echo $SETTING"), "kept\n2");
    await project.docker("compose", "rm", "--stop", "--force", "--volumes", "keeper");
  });

  test("a service that left the compose file keeps running; each roll-out says how to remove it", async () => {
    await project.alsoHas({});
    const [left = ""] = await project.containerNames("cache");
    const output = await outputOf(project.rollOut());
    const told = `is not in the compose file, or in a profile that COMPOSE_PROFILES in .env does not name, but has containers. If it is gone for good: docker rm --force ${left}`;
    assert.match(output, new RegExp(`cache +note +${told}`));
    assert.equal((await project.containers("cache")).length, 1);
  });

  test("services start at the same time, unless one depends on the other", async () => {
    await project.alsoHas({ api: twin, worker: twin, late: { ...twin, depends_on: ["api"] } });
    await project.underLoad(async () => {
      const output = await outputOf(project.deploy("together", "graceful", { args: ["--json"] }));
      const spanOf = spansIn(output);
      const starts = ["app", "api", "worker"].map((service) => spanOf(service, "start"));
      const lastBeginMs = Math.max(...starts.map(({ beginMs }) => beginMs));
      for (const { endMs } of starts) assert.ok(lastBeginMs < endMs, output);
      assert.ok(spanOf("late", "start").beginMs >= spanOf("api", "healthy").endMs, output);
      assert.throws(() => spanOf("api", "drain"), "it is not behind the proxy");
    });
    assert.equal(await project.version(), "together");
  });

  test("when one fails, those beside it stay with the old version", async () => {
    await project.serving("known");
    const before = await Promise.all(["app", "worker"].map(project.containers));
    await project.alsoHas({ api: twin, worker: { ...twin, command: ["false"] } });
    const output = await outputOf(project.deploy("half", "sick"), 1);
    assert.match(output, /FAILED: .*worker/);
    assert.match(output, /app +note +is given up, because another service failed/);
    assert.deepEqual(await Promise.all(["app", "worker"].map(project.containers)), before);
    assert.equal((await project.containers("api")).length, 1);
    assert.equal(await project.version(), "known");
  });

  test("a service that two cannot run of is recreated while no other is replaced", async () => {
    await project.alsoHas({ api: twin, worker: twin, single: { environment: { SETTING: "changed" } } });
    const output = await outputOf(project.deploy("alone", "graceful", { args: ["--json"] }));
    const spanOf = spansIn(output);
    const alone = { beginMs: spanOf("single", "recreate").beginMs, endMs: spanOf("single", "healthy").endMs };
    for (const service of ["app", "api", "worker"]) {
      const first = spanOf(service, "start");
      const last = spanOf(service, "stop");
      assert.ok(last.endMs <= alone.beginMs || first.beginMs >= alone.endMs, output);
    }
  });

  test("a migration whose files lie in the repository runs in each roll-out", async () => {
    await hasMigration("cat /sql/*", { volumes: ["./sql:/sql:ro"] });
    await mkdir(join(project.directory, "sql"));
    for (const [name, text] of [
      ["1", "CREATE TABLE orders;"],
      ["2", "CREATE INDEX;"],
    ] as const) {
      await writeFile(join(project.directory, "sql", `${name}.sql`), `${text}\n`);
      const output = await outputOf(project.rollOut({ args: ["migrate"] }));
      assert.match(output, /^ +migrate +ran +to its end/m);
    }
    const log = await project.docker("compose", "logs", "--no-log-prefix", "migrate");
    assert.equal(log, "CREATE TABLE orders;\nCREATE INDEX;");
  });

  test("a migration waits until Docker calls its database healthy, not for its first start's temporary server", async () => {
    const state = { volumes: ["./first:/first"] };
    const start = "touch /first/up; sleep 2; rm /first/up; sleep 2; touch /first/done /first/up";
    const db = shell(`${start}; exec sleep infinity`, {
      ...state,
      init: true,
      healthcheck: { test: ["CMD", "test", "-f", "/first/up"], interval: "6s" },
    });
    const migrate = shell("test -f /first/done", {
      ...state,
      depends_on: { db: { condition: "service_healthy" } },
    });
    const awaits = { depends_on: { migrate: { condition: "service_completed_successfully" } } };
    await mkdir(join(project.directory, "first"));
    await project.alsoHas({ db, migrate, single: awaits });
    const output = await outputOf(project.rollOut({ args: ["db", "migrate"] }));
    assert.match(output, /^ +migrate +ran +to its end/m);
    await project.docker("compose", "rm", "--stop", "--force", "db", "migrate");
  });

  test("a service that nothing depends on succeeds with exit code 0", async () => {
    const named = { container_name: `${project.name}-makes-buckets` };
    await project.alsoHas({ seed: shell("echo seeded"), buckets: shell("echo made", named) });
    for (let round = 1; round <= 2; round += 1) {
      const output = await outputOf(project.rollOut({ args: ["seed", "buckets"] }));
      assert.match(output, /seed +healthy .* it ran to its end: exit code 0, and no restart policy/);
      assert.match(output, /^ +seed +ran +to its end/m);
      assert.match(output, /^ +buckets +ran +to its end/m);
    }
  });

  test("a server that exits with 0 does not replace one that runs", async () => {
    await project.alsoHas({ server: shell("exec sleep infinity", { init: true }) });
    await outputOf(project.rollOut({ args: ["server"] }));
    const containers = await project.containers("server");
    await project.alsoHas({ server: shell("echo nothing to do", { init: true }) });
    const output = await outputOf(project.rollOut({ args: ["server"] }), 1);
    assert.match(output, /FAILED: Container \S+ ended with exit code 0 before it was healthy/);
    assert.deepEqual(await project.containers("server"), containers);
    await project.docker("compose", "rm", "--stop", "--force", "server");
  });

  test("a roll-out that is stopped stops its migration and says so", async () => {
    await hasMigration(`trap "exit 9" TERM; ${sleeping}`);
    const output = await outputOf(stopInMigration("SIGTERM", { args: ["migrate"] }), 1);
    assert.match(output, /migrate-\d+ must not go on unattended: stopping it, with 10 s to end/);
    assert.match(output, /migrate-\d+ was stopped before its end, with exit code 9/);
    assert.match(output, /FAILED: The roll-out was asked to stop/);
    assert.deepEqual(await runsOf("migrate"), ["exited"]);
  });

  test("a roll-out waits for the migration of a killed one, and then runs its own", async () => {
    const kept = { volumes: ["./kept:/kept"], init: true };
    await mkdir(join(project.directory, "kept"));
    const untilAllowed = "while [ ! -e /kept/allowed ]; do sleep 0.1; done";
    await hasMigration(`echo begins >>/kept/log; ${untilAllowed}; echo ends >>/kept/log`, kept);
    await stopInMigration("SIGKILL", { args: ["migrate"] });
    await hasMigration("echo next >>/kept/log", kept);
    const next = project.spawnRollout({ args: ["migrate"] });
    const allow = () => writeFile(join(project.directory, "kept", "allowed"), "");
    const output = await outputOf(untilPrinted(next, /still runs/, allow));
    assert.match(
      output,
      /migrate-\d+, left by an earlier roll-out, still runs: waiting for its end, at most 6 h/,
    );
    assert.match(output, /migrate +run .* \S+-migrate-\d+ ended with exit code 0/);
    const log = await readFile(join(project.directory, "kept", "log"), "utf8");
    assert.deepEqual(log.trim().split("\n"), ["begins", "ends", "next"]);
  });
  function hasMigration(command: string, more?: Readonly<Record<string, unknown>>): Promise<void> {
    const app = { depends_on: { migrate: { condition: "service_completed_successfully" } } };
    return project.alsoHas({ migrate: shell(command, more), app });
  }

  async function stopInMigration(signal: NodeJS.Signals, options: RolloutOptions) {
    const rollout = project.spawnRollout(options);
    const ending = endOf(rollout);
    await until("the migration", async () => (await runsOf("migrate")).includes("running"));
    rollout.kill(signal);
    return ending;
  }

  async function runsOf(service: string): Promise<readonly string[]> {
    const labels = [`com.docker.compose.project=${project.name}`, `com.docker.compose.service=${service}`];
    const filters = labels.flatMap((label) => ["--filter", `label=${label}`]);
    const listed = await project.docker("ps", "--all", ...filters, "--format", "{{.State}}");
    return listed.split("\n").filter(Boolean);
  }

  /** Makes an image that differs by `content`, pushes it as `name`, and removes the local name. */
  async function push(name: string, content: string): Promise<void> {
    const directory = join(project.directory, "other");
    const text = `FROM debian:trixie-slim\nLABEL content=${content} com.docker.compose.project=${project.name}\nCMD ["sleep", "infinity"]\n`;
    await writeFile(join(directory, "Dockerfile.cache"), text);
    const file = join(directory, "Dockerfile.cache");
    await project.docker("build", "--quiet", "--file", file, "--tag", name, directory);
    await project.docker("push", "--quiet", name);
    await project.docker("tag", name, `${project.name}-cache:${content}`);
    await project.docker("rmi", name);
  }
});

/** The shell handles a signal between two of them. */
const sleeping = "while :; do sleep 0.1; done";

function shell(command: string, more: Readonly<Record<string, unknown>> = {}) {
  return { image: "debian:trixie-slim", command: ["sh", "-c", command], ...more };
}

/** A service from the app's sources that no proxy knows. */
const twin = {
  build: "app",
  restart: "unless-stopped",
  healthcheck: { test: ["CMD", "./healthcheck.sh"], start_period: "30s", start_interval: "200ms" },
};

/** When the steps of services began and ended, by the output of `--json`. */
function spansIn(output: string) {
  const steps = eventsIn(output).filter((one) => one.event === "step");
  return (service: string, step: string) => {
    const found = steps.find((one) => one.service === service && one.step === step);
    assert.ok(found, `${service} has no step ${step}: ${output}`);
    const endMs = Date.parse(found.at);
    return { beginMs: endMs - found.durationMs, endMs };
  };
}
