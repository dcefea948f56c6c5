import assert from "node:assert/strict";
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { findProcessesOf } from "../../src/runner/processes.ts";
import { countRepeatedRuns, recordedStates } from "../harness/database.ts";
import { deliver, githubPush, testSecret } from "../harness/delivery.ts";
import { until } from "../harness/until.ts";
import { type HostedProject, makeHosted } from "../lab/hosted.ts";
import { onEngine } from "../lab/on-engine.ts";
import { assertNoneLost, startPushes } from "../lab/pushes.ts";
import { lingerS, marked, script } from "../lab/self-changing.ts";

/** Ten take a minute; three show that one can follow another. */
const replacements = Number(process.env.HOTPUSH_E2E_REPLACEMENTS ?? 3);

onEngine("Hotpush deploys itself behind the proxy", (env) => {
  let project: HostedProject;

  before(async () => {
    project = await makeHosted(env, { script, override: marked, variables: { MARK: "0" } });
  });
  after(() => project?.remove());

  test(`${replacements} times under 20 pushes a second, none is lost or cut off`, async (t) => {
    const pushes = startPushes(project.origin);
    const seen = new Set<string>();
    await until(
      `${replacements} replacements`,
      async () => {
        seen.add(await project.live());
        return seen.size > replacements;
      },
      replacements * 60_000,
    ).catch(async (error: unknown) => {
      await pushes.stop();
      throw error;
    });
    const results = await pushes.stop();
    await assertNoneLost(results, project.statePath);
    const states = recordedStates(project.statePath);
    const succeeded = [...states.values()].filter((state) => state === "succeeded").length;
    t.diagnostic(
      `${results.length} pushes, ${succeeded} deployed, the rest superseded; ${seen.size - 1} replacements`,
    );
    assert.ok(succeeded >= replacements, `${succeeded} succeeded`);
    assert.equal(
      countRepeatedRuns(project.statePath),
      0,
      "each ran to its end in the instance that started it",
    );
    await until("one instance", async () => (await project.instances()).length === 1);
    assert.deepEqual(await project.instances(), [await project.live()]);
  });

  test("a script that continues after its roll-out ends before the old container is removed", async () => {
    const path = join(project.directory, "linger");
    writeFileSync(path, lingerS);
    const { json } = await deliver(project.origin, githubPush());
    await assertSucceeds(json.deployment?.id);
    rmSync(path);
    assert.equal(countRepeatedRuns(project.statePath), 0);
    await until("one instance", async () => (await project.instances()).length === 1);
  });

  test("a roll-out by hand in its container succeeds before the old one is removed", async () => {
    await until("one instance", async () => (await project.instances()).length === 1);
    const old = await project.live();
    const settings = join(project.directory, ".env");
    await project.docker("exec", old, "sed", "-i", "s/^MARK=.*/MARK=by-hand/", settings);
    // Rejects unless its exit code is 0.
    const output = await project.docker("exec", old, "hotpush", "rollout", "--json");
    assert.match(output.split("\n").at(-1) ?? "", /"event":"finished"/);
    await until("one instance", async () => (await project.instances()).length === 1);
    assert.notEqual(await project.live(), old);
  });

  test("if the old one is killed during its replacement, the new one takes over", async () => {
    const old = await project.live();
    const repeated = countRepeatedRuns(project.statePath);
    // So its deployment has not ended when it is killed, however long that takes.
    const path = join(project.directory, "linger");
    writeFileSync(path, lingerS);
    const { json } = await deliver(project.origin, githubPush());
    await until("the switch", async () => (await project.live()) !== old, 60_000);
    await project.docker("kill", old);
    rmSync(path);
    await assertSucceeds(json.deployment?.id);
    assert.equal(countRepeatedRuns(project.statePath), repeated + 1);
    await until("one instance", async () => (await project.instances()).length === 1);
  });

  test("if a roll-out is killed after its switch, the next removes the old container", async () => {
    const old = await project.live();
    const { json } = await deliver(project.origin, githubPush());
    const id = json.deployment?.id ?? 0;
    await until("the switch", async () => (await project.live()) !== old, 60_000);
    for (const { pid, command } of findProcessesOf(id, project.directory)) {
      if (command.includes("rollout")) process.kill(pid, "SIGKILL");
    }
    assert.equal(await project.ending(id), "failed");
    assert.equal((await project.instances()).length, 2);
    const next = await deliver(project.origin, githubPush());
    await assertSucceeds(next.json.deployment?.id);
    await until("one instance", async () => (await project.instances()).length === 1);
    assert.deepEqual(await project.instances(), [await project.live()]);
    assert.notEqual(await project.live(), old);
  });

  for (const [what, helper] of [
    ["whose new container does not serve", null],
    [
      "whose helper fails",
      { name: "hotpush-e2e-helper", project: "none", args: ["rollout", `--nonsense=${testSecret}`] },
    ],
  ] as const) {
    test(`a replacement ${what} is abandoned, and the old container continues`, async () => {
      await until("one instance", async () => (await project.instances()).length === 1);
      const name = await project.live();
      const old = await project.docker("inspect", "--format", "{{.Id}}", name);
      const notePath = join(project.statePath, "replacement.json");
      writeFileSync(`${notePath}.new`, JSON.stringify({ old, helper }), { mode: 0o600 });
      renameSync(`${notePath}.new`, notePath);
      await until("the note is gone", () => !existsSync(notePath), 60_000);
      // Docker stores log lines with a delay.
      const log = await until("it is logged", async () => {
        const text = await project.docker("logs", name);
        return text.includes(`"event":"service.not_replaced"`) && text;
      });
      assert.ok(!log.includes(testSecret), "no secret in what the helper wrote");
      const { json } = await deliver(project.origin, githubPush());
      await assertSucceeds(json.deployment?.id);
    });
  }

  /** If the deployment does not succeed, the error has the log of the container that serves. */
  async function assertSucceeds(id = 0): Promise<void> {
    const state = await project.ending(id);
    assert.equal(state, "succeeded", await project.docker("logs", await project.live()));
  }
});
