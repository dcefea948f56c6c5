import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { countingCaddyfile } from "../lab/counting-caddyfile.ts";
import { onEngine } from "../lab/on-engine.ts";
import { type Behaviour, requestsIn } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

/** 200 take half an hour. */
const rollouts = Number(process.env.HOTPUSH_E2E_MANY ?? 6);
const healthy: readonly Behaviour[] = [
  "graceful",
  "dies-on-sigterm",
  "ignores-sigterm",
  "slow-start",
  "lingers",
];
const faulty: readonly Behaviour[] = ["sick", "crashes"];

onEngine("many roll-outs in a row", (env) => {
  let project: RolledProject;

  before(async () => {
    project = await makeRolledProject(env, (made) =>
      writeFile(join(made.directory, "Caddyfile"), countingCaddyfile),
    );
    assert.equal((await project.deploy("version-0", "graceful")).code, 0);
  });
  after(() => project?.remove());

  test(`${rollouts} roll-outs of all kinds of apps, one in ten sick, fail no request`, async (t) => {
    let counted = 0;
    const { answers, versions } = await project.underLoad(async () => {
      for (let number = 1; number <= rollouts; number += 1) {
        const isFaulty = number % 10 === 5;
        const behaviour = kindOf(isFaulty ? faulty : healthy, number);
        const options = { args: ["--json"], env: { HEALTHY_TIMEOUT: "8s" } };
        const { code, output } = await project.deploy(`version-${number}`, behaviour, options);
        assert.equal(code, isFaulty ? 1 : 0, output);
        const sites = requestsIn(output);
        assert.deepEqual(
          sites.map(({ failed, brokeOff }) => ({ failed, brokeOff })),
          [{ failed: 0, brokeOff: 0 }],
          `roll-out ${number}: ${behaviour}`,
        );
        counted += sites[0]?.requests ?? 0;
      }
    });
    t.diagnostic(`${answers.length} requests, ${counted} of them counted in proofs, none failed`);
    assert.ok(counted <= answers.length + rollouts);
    assert.ok(!versions.includes("version-5"));
  });
});

function kindOf(kinds: readonly Behaviour[], number: number): Behaviour {
  return kinds[number % kinds.length] ?? "graceful";
}
