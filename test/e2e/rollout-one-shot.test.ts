import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { endOf, outputOf, type RolloutOptions, untilPrinted } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("one-shot services on a real engine", (env) => {
  let project: RolledProject;

  before(async () => {
    project = await makeRolledProject(env);
  });
  after(() => project?.remove());

  test("a migration whose files lie in the repository runs in each roll-out", async () => {
    const mounted = { volumes: ["./sql:/sql:ro"] };
    await hasMigration("cat /sql/*", mounted);
    await mkdir(join(project.directory, "sql"));
    await writeFile(join(project.directory, "sql", "1.sql"), "CREATE TABLE orders;\n");
    const first = await rollOutAt("1", "migrate");
    assert.match(first, /^ +migrate +ran +to its end/m);
    await writeFile(join(project.directory, "sql", "2.sql"), "CREATE INDEX;\n");
    const second = await rollOutAt("2", "migrate");
    assert.match(second, /^ +migrate +ran +to its end/m);
    assert.equal(await project.docker("compose", "logs", "--no-log-prefix", "migrate"), sql);
  });

  test("a service that nothing depends on succeeds with exit code 0", async () => {
    const named = { container_name: `${project.name}-makes-buckets` };
    await project.alsoHas({ seed: shell("echo seeded"), buckets: shell("echo made", named) });
    for (const commit of ["1", "2"]) {
      const output = await rollOutAt(commit, "seed", "buckets");
      assert.match(output, /seed +healthy .* it ran to its end: exit code 0, and no restart policy/);
      assert.match(output, /^ +seed +ran +to its end/m);
      assert.match(output, /^ +buckets +ran +to its end/m);
    }
  });

  test("a server that exits with 0 does not replace one that runs", async () => {
    await project.alsoHas({ server: shell("exec sleep infinity", { init: true }) });
    await rollOutAt("1", "server");
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

  function rollOutAt(commit: string, ...services: readonly string[]): Promise<string> {
    return outputOf(project.rollOut({ args: ["--commit", commit.repeat(40), ...services] }));
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
});

const sql = "CREATE TABLE orders;\nCREATE INDEX;";
/** The shell handles a signal between two of them. */
const sleeping = "while :; do sleep 0.1; done";

function shell(command: string, more: Readonly<Record<string, unknown>> = {}) {
  return { image: "debian:trixie-slim", command: ["sh", "-c", command], ...more };
}
