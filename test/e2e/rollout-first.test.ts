import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { type Behaviour, makeProject, type TestProject } from "../lab/project.ts";

onEngine("the first roll-out of a project that plain compose has started, outside of git", (env) => {
  let project: TestProject;

  before(async () => {
    project = await makeProject(env);
    const seed = { image: "debian:trixie-slim", command: ["true"] };
    await writeFile(join(project.directory, "compose.override.yaml"), JSON.stringify({ services: { seed } }));
  });
  after(() => project?.remove());

  test("the serving version is recorded by its creation time, even if a seed has ended", async () => {
    await startByCompose("first", "graceful");
    await project.write("second", "graceful");
    const { code, output } = await project.rollOut();
    assert.equal(code, 0, output);
    assert.match(output, /note +what serves now is recorded as a good version, \d{12}: /);
    assert.equal((await project.hotpush("prune")).code, 0);
    const back = await project.rollOut({ args: ["--back"] });
    assert.equal(back.code, 0, back.output);
    assert.match(await (await fetch(project.origin)).text(), /^first /);
  });

  test("a version that is not healthy is not recorded as a good one", async () => {
    await rm(join(project.directory, "state"), { recursive: true });
    await startByCompose("third", "sick");
    await project.write("fourth", "graceful");
    const { code, output } = await project.rollOut();
    assert.equal(code, 0, output);
    const back = await project.rollOut({ args: ["--back"] });
    assert.match(back.output, /FAILED: There is no good version before the present one/);
  });

  async function startByCompose(version: string, behaviour: Behaviour): Promise<void> {
    await project.write(version, behaviour);
    await project.docker("compose", "up", "--detach", "--build");
    const ids = await project.docker("compose", "ps", "--all", "--quiet", "app");
    if (behaviour === "sick") return;
    const health = () => project.docker("inspect", "--format", "{{.State.Health.Status}}", ids);
    await until("the health of the app", async () => (await health()) === "healthy");
  }
});
