import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { readRecorded } from "../harness/records.ts";
import { writeScript } from "../harness/temporary.ts";
import { type HostedProject, makeHosted } from "../lab/hosted.ts";
import { onEngine } from "../lab/on-engine.ts";

/** Changes the configuration of Hotpush itself, and nothing else. */
const changing = `#!/bin/sh
set -e
sed -i "s/^MARK=.*/MARK=$DEPLOY_ID/" .env
hotpush rollout
`;

/** Restarts Hotpush in the middle of its first `times` attempts. */
const restarting = (times: number) => `#!/bin/sh
set -e
echo x >> attempts
[ "$(wc -l < attempts)" -gt ${times} ] || docker restart "$(cat /etc/hostname)"
rm attempts
`;

onEngine("Hotpush as a service of the compose project that it deploys", (env) => {
  let project: HostedProject;

  before(async () => {
    const override = { labels: { mark: `\${MARK}` } };
    project = await makeHosted(env, { script: changing, override, variables: { MARK: "0" } });
  });
  after(() => project?.remove());

  test("a deployment leaves it alone, though its part of the compose file has changed", async () => {
    const before = await project.containers("hotpush");
    await assertEnds("succeeded");
    assert.deepEqual(await project.containers("hotpush"), before);
  });

  test("a roll-out of it is refused, with the command that replaces it", async () => {
    const [name = ""] = await project.instances();
    const asked = project.docker("exec", name, "hotpush", "rollout", "hotpush");
    const stdout = /docker compose up --detach hotpush/;
    await assert.rejects(asked, { stdout });
    const [old] = await project.containers("hotpush");
    await project.docker("compose", "up", "--detach", "--wait", "hotpush");
    assert.notEqual((await project.containers("hotpush"))[0], old);
  });

  test("a deployment that restarts it runs again, and then succeeds", async () => {
    writeScript(join(project.directory, "deploy.sh"), restarting(1));
    await assertEnds("succeeded", { attempts: 2 });
  });

  test("a deployment that restarts it each time is given up after three attempts", async () => {
    writeScript(join(project.directory, "deploy.sh"), restarting(9));
    await assertEnds("failed", { attempts: 3, problem_code: "deployment_gave_up" });
  });

  /** If the deployment ends otherwise, the error has the log of the container. */
  async function assertEnds(ending: string, record = {}): Promise<void> {
    const { json } = await deliver(project.origin, githubPush());
    const id = json.deployment?.id ?? 0;
    const [name = ""] = await project.instances();
    assert.equal(await project.ending(id), ending, await project.docker("logs", name));
    const rows = readRecorded(project.statePath, ({ all }) =>
      all(`SELECT attempts, problem_code FROM deployments WHERE id = ${id}`),
    );
    assert.partialDeepStrictEqual({ ...rows[0] }, record);
  }
});
