import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ServiceLogEvent } from "../../src/calls/shapes.ts";
import { startCommand } from "../harness/hotpush.ts";
import { startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("running logs on a real engine", (env) => {
  let project: RolledProject;
  before(async () => {
    project = await makeRolledProject(env);
  });
  after(() => project?.remove());

  test("a follower reads old and new containers across a roll-out, each line once", async (t) => {
    const { DOCKER_HOST = "" } = project.env;
    const service = await startService(t, { repoPath: project.directory, env: { DOCKER_HOST } });
    const command = startCommand(t, service, "logs", "--service", "app", "-f", "--json");
    await command.waitForLine(/version first starts/);
    const [old = ""] = await project.containerNames("app");
    await project.docker("exec", old, "sh", "-c", "seq 1 20000 > /proc/1/fd/1");
    const { code, output } = await project.deploy("second", "graceful");
    assert.equal(code, 0, output);
    await command.waitForLine(/version second starts/);
    await command.waitForLine(/"ended"/);
    const [now = ""] = await project.containerNames("app");
    await project.docker("restart", now);
    const events = () => command.lines.map((line) => JSON.parse(line) as ServiceLogEvent);
    const [first = "", second = ""] = await until("the line of the restart", () => {
      const starts = events().filter((one) => one.event === "line" && / starts,/.test(one.line));
      return starts.length === 3 && starts.map(({ container }) => container);
    });
    assert.notEqual(first, second);
    const linesOf = (name: string) =>
      events().flatMap((one) => (one.event === "line" && one.container === name ? [one.line] : []));
    const numbers = linesOf(first).filter((line) => /^\d+$/.test(line));
    assert.deepEqual(
      numbers,
      Array.from({ length: 20_000 }, (_, index) => String(index + 1)),
    );
    const states = events().flatMap((one) =>
      one.event === "container" ? [`${one.container} ${one.state}`] : [],
    );
    assert.deepEqual(states, [
      `${first} begun`,
      `${second} begun`,
      `${first} ended`,
      `${second} ended`,
      `${second} begun`,
    ]);
  });
});
