import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { onEngine } from "../lab/on-engine.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("services side by side on a real engine", (env) => {
  let project: RolledProject;

  before(async () => {
    project = await makeRolledProject(env);
  });
  after(() => project?.remove());

  /** Sets the project's additional services, until the next call. */
  function alsoHas(services: Readonly<Record<string, unknown>>): Promise<void> {
    return writeFile(join(project.directory, "compose.override.yaml"), JSON.stringify({ services }));
  }

  test("services start at the same time, unless one depends on the other", async () => {
    await alsoHas({ api: twin, worker: twin, late: { ...twin, depends_on: ["api"] } });
    await project.underLoad(async () => {
      const { code, output } = await project.deploy("together", "graceful", { args: ["--json"] });
      assert.equal(code, 0, output);
      const spanOf = spansIn(output);
      const starts = ["app", "api", "worker"].map((service) => spanOf(service, "start"));
      const lastBeginMs = Math.max(...starts.map(({ beginMs }) => beginMs));
      for (const { endMs } of starts) assert.ok(lastBeginMs < endMs, output);
      assert.ok(spanOf("late", "start").beginMs >= spanOf("api", "healthy").endMs, output);
    });
    assert.equal(await project.version(), "together");
  });

  test("when one fails, those beside it stay with the old version", async () => {
    await project.serving("known");
    const before = await Promise.all(["app", "worker"].map(project.containers));
    await alsoHas({ api: twin, worker: { ...twin, command: ["false"] } });
    await project.underLoad(async () => {
      const { code, output } = await project.deploy("half", "sick");
      assert.equal(code, 1, output);
      assert.match(output, /FAILED: .*worker/);
      assert.match(output, /app +note +is given up, because another service failed/);
    });
    assert.deepEqual(await Promise.all(["app", "worker"].map(project.containers)), before);
    assert.equal((await project.containers("api")).length, 1);
    assert.equal(await project.version(), "known");
  });

  test("a service that two cannot run of is recreated while no other is replaced", async () => {
    await alsoHas({ api: twin, worker: twin, single: { environment: { SETTING: "changed" } } });
    const { code, output } = await project.deploy("alone", "graceful", { args: ["--json"] });
    assert.equal(code, 0, output);
    const spanOf = spansIn(output);
    const alone = { beginMs: spanOf("single", "recreate").beginMs, endMs: spanOf("single", "healthy").endMs };
    for (const service of ["app", "api", "worker"]) {
      const first = spanOf(service, "start");
      const last = spanOf(service, "stop");
      assert.ok(last.endMs <= alone.beginMs || first.beginMs >= alone.endMs, output);
    }
  });
});

/** A service from the app's sources that no proxy knows. */
const twin = {
  build: "app",
  restart: "unless-stopped",
  healthcheck: { test: ["CMD", "./healthcheck.sh"], start_period: "30s", start_interval: "200ms" },
};

interface Span {
  readonly beginMs: number;
  readonly endMs: number;
}

/** When the steps of services began and ended, by the output of `--json`. */
function spansIn(output: string): (service: string, step: string) => Span {
  const events = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  return (service, step) => {
    const found = events.find((event) => event.service === service && event.step === step);
    assert.ok(found, `${service} has no step ${step}: ${output}`);
    const endMs = Date.parse(found.at);
    return { beginMs: endMs - found.durationMs, endMs };
  };
}
