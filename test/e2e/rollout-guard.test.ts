import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { GuardOrder } from "../../src/deployments/deployment.ts";
import type { RolloutEvent } from "../../src/rollout/report.ts";
import { readDeploymentReport } from "../../src/rollout/report.ts";
import { giveGuardOrder, removeGuardOrder } from "../../src/rollout/requests.ts";
import { type LoadResult, startLoad } from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";
import {
  countingCaddyfile,
  type Ending,
  makeProject,
  readLive,
  type TestProject,
  untilPrinted,
} from "../lab/project.ts";

/** About 100 requests a second. */
const pauseMs = 150;

interface Faults {
  /** Each so-manieth request gets 500. */
  readonly errs?: { readonly every: number };
  /** How much later every request is answered. */
  readonly slowMs?: number;
}

onEngine("the guard of a new version", (env) => {
  let project: TestProject;
  let old: string;

  before(async () => {
    project = await makeProject({ ...env, GUARD: "6s" });
    // Another service is behind the proxy too: it must not matter.
    const api = "\treverse_proxy /api {file./run/live/api}:8080\n";
    await writeFile(
      join(project.directory, "Caddyfile"),
      countingCaddyfile.replace(":80 {\n", `:80 {\n${api}`),
    );
    await project.write("first", "graceful");
    const { code, output } = await project.rollOut({ args: ["app", "caddy"] });
    assert.equal(code, 0, output);
    old = await readLive(project);
  });
  after(() => project?.remove());

  /** Rolls out a version that is healthy, but answers badly. */
  async function rollOut(faults: Faults): Promise<Ending & { readonly load: LoadResult }> {
    const path = join(project.directory, "app", "behaviour.json");
    await writeFile(
      path,
      JSON.stringify({ version: JSON.stringify(faults), behaviour: "graceful", ...faults }),
    );
    const load = startLoad(project.origin, pauseMs);
    // The health check does not see these errors, and the check through the proxy asks for the same.
    const CHECK_URL = `${project.origin}/health`;
    const ending = await project.rollOut({ args: ["--json", "app"], env: { CHECK_URL } });
    return { ...ending, load: await load.stop() };
  }

  test("a version that fails every request is gone within two seconds of its first error", async () => {
    const { code, output, load } = await rollOut({ errs: { every: 1 } });
    assert.equal(code, 1, output);
    assert.match(
      failureIn(output),
      /is worse than the one before: \d+ of \d+ requests went wrong \(9\d(?:\.\d)? %\), before 0 of/,
    );
    const times = load.failures.map(({ atMs }) => atMs);
    assert.ok(
      Math.max(...times) - Math.min(...times) < 2_000,
      `${Math.max(...times) - Math.min(...times)} ms`,
    );
    assert.equal(errorsIn(output), load.failures.length);
    assert.equal(await readLive(project), old);
  });

  test("a version that answers 200 ms later than the one before goes back, without an error", async () => {
    const { code, output, load } = await rollOut({ slowMs: 200 });
    assert.equal(code, 1, output);
    assert.match(failureIn(output), /19 of 20 answers came within .+ before within \d+ ms/);
    assert.deepEqual(load.failures, []);
    assert.equal(await readLive(project), old);
  });

  test("a roll back during the guard brings the old version back at once", async () => {
    const { code, output } = await orderDuringGuard("back");
    assert.equal(code, 1, output);
    assert.match(failureIn(output), /^A roll back was requested while the new version of app was guarded/);
    assert.equal(await readLive(project), old);
  });

  test("a newer deployment ends the guard, and the new version stays", async () => {
    const { code, output } = await orderDuringGuard("end");
    assert.equal(code, 0, output);
    assert.match(output, /"step":"guard".*"detail":"ended early: too few requests to judge by/);
    old = await readLive(project);
  });

  test("a roll-out that is cancelled during the guard brings the old version back", async () => {
    await project.write("cancelled", "graceful");
    const rollout = project.spawnRollout({ args: ["--json", "app"], env: { GUARD: "60s" } });
    const { code, output } = await untilPrinted(rollout, /"event":"guarding"/, async () => {
      rollout.kill("SIGTERM");
    });
    assert.notEqual(code, 0, output);
    assert.equal(failureIn(output), "The roll-out was asked to stop.");
    assert.equal(await readLive(project), old);
  });

  /** Rolls out a good version as deployment 7, and gives an order as the service does. */
  async function orderDuringGuard(order: GuardOrder): Promise<Ending> {
    const statePath = join(project.directory, "state");
    await project.write(`ordered-${order}`, "graceful");
    const ordersPath = join(project.directory, "orders");
    const env = { DEPLOY_ID: "7", HOTPUSH_ORDERS: ordersPath, GUARD: "60s" };
    const rollout = project.spawnRollout({ args: ["--json", "app"], env });
    const ending = await untilPrinted(rollout, /"event":"guarding"/, async () => {
      assert.ok(readDeploymentReport(statePath, 7).isGuarding);
      giveGuardOrder(ordersPath, 7, order);
    });
    removeGuardOrder(ordersPath, 7);
    return ending;
  }

  test("a version that fails each hundredth request stays: the guard tolerates two percentage points", async () => {
    const { code, output, load } = await rollOut({ errs: { every: 100 } });
    assert.equal(code, 0, output);
    assert.ok(load.failures.length > 0);
    assert.notEqual(await readLive(project), old);
  });
});

function eventsOf(output: string): readonly RolloutEvent[] {
  const lines = output.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line));
}

function failureIn(output: string): string {
  const failed = eventsOf(output).find(({ event }) => event === "failed");
  return failed?.event === "failed" ? failed.detail : "";
}

/** The answers of the app with 5xx, as the roll-out counted them. */
function errorsIn(output: string): number {
  const counted = eventsOf(output).find(({ event }) => event === "requests");
  const sites = (counted?.event === "requests" && counted.sites) || [];
  return sites.reduce((sum, { before, after }) => sum + before.serverErrors + after.serverErrors, 0);
}
