import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { startLoad } from "../lab/load.ts";
import { makeNewMachine, type Newcomer, type NewMachine } from "../lab/newcomer.ts";
import { onEngine } from "../lab/on-engine.ts";
import { endingIn } from "../lab/project.ts";

/** Ten take some minutes. */
const projectCount = Number(process.env.HOTPUSH_TEST_PROJECTS ?? 3);
/** About ten requests a second at each project, so that two cores have time for the roll-outs. */
const pauseMs = 1_500;
const answersEach = 30;
const endsWithinMs = 60_000;

function declare(env: NodeJS.ProcessEnv): void {
  let machine: NewMachine;
  const projects: Newcomer[] = [];

  before(async () => {
    machine = await makeNewMachine(env);
  });
  after(() => machine?.remove());

  test("projects are set up one after the other, each with the same commands", {
    timeout: 600_000,
  }, async (t) => {
    for (let number = 1; number <= projectCount; number += 1) {
      projects.push(await machine.setUp(`shop-${number}`));
      for (const project of projects) assert.equal(await project.version(), "first");
    }
    const [first = 0, ...others] = projects.map(({ initTookMs }) => initTookMs / 1_000);
    t.diagnostic(`init took ${first.toFixed(1)} s, then ${others.map((s) => s.toFixed(1)).join(", ")} s`);
  });

  test("pushes to all at once are deployed, and fail no request of any", { timeout: 600_000 }, async (t) => {
    const loads = projects.map(({ host }) => startLoad(machine.origin, pauseMs, host));
    const enough = (count: number) => loads.every(({ answers }) => answers.length >= count);
    try {
      await until("answers", () => enough(answersEach), 60_000);
      const ids = await Promise.all(projects.map(({ push }) => push("second")));
      const endings = ids.map((id) => endingIn(machine.runStatePath)(id, endsWithinMs * projectCount));
      assert.deepEqual([...new Set(await Promise.all(endings))], ["succeeded"]);
      const most = Math.max(...loads.map(({ answers }) => answers.length));
      await until("answers after it", () => enough(most + answersEach), 60_000);
    } finally {
      await Promise.all(loads.map(({ stop }) => stop()));
    }
    const results = await Promise.all(loads.map(({ stop }) => stop()));
    const failures = results.flatMap((result) => result.failures);
    const count = results.reduce((sum, { answers }) => sum + answers.length, 0);
    assert.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${count} requests failed`);
    for (const project of projects) assert.equal(await project.version(), "second");
    t.diagnostic(`${count} requests`);
  });
}

onEngine("the projects on a server", declare, "one server");
