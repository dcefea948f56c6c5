import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { setupSteps } from "../../src/setup/init.ts";
import { type FirstProject, makeFirstProject } from "../lab/first-project.ts";
import { onEngine } from "../lab/on-engine.ts";
import { outputOf } from "../lab/project.ts";

onEngine(
  "hotpush init ends in a working server, wherever an earlier run ended",
  (env) => {
    let project: FirstProject;

    before(async () => {
      project = await makeFirstProject(env);
      await project.reset();
    });
    after(() => project.remove());

    test("a container that fails is named with its last lines, until its cause is fixed", async (t) => {
      await assertWorks();
      const { composeFile } = project.files;
      const good = readFileSync(composeFile, "utf8");
      // The state of `front` is where nobody may write.
      writeFileSync(composeFile, good.replace("STATE_PATH: /state", "STATE_PATH: /nowhere/state"));
      t.after(() => writeFileSync(composeFile, good));
      const output = await outputOf(project.init(), 1);
      assert.match(output, /hotpush: front in \S+ does not start\./);
      assert.match(output, /Last log lines:\n(?:.*\n)*.*\/nowhere\/state/);
      assert.doesNotMatch(output, /^Next:/m);
      writeFileSync(composeFile, good);
      await assertWorks();
    });

    test("a container that has the port of Caddy is named, with its project", async (t) => {
      await project.docker("stop", "hotpush-caddy-1");
      const labels = ["=blog", ".working_dir=/srv/blog"].map(
        (one) => `--label=com.docker.compose.project${one}`,
      );
      const publish = `--publish=${project.httpPort}:80`;
      t.after(() => project.docker("rm", "--force", "hotpush-e2e-blog"));
      await project.docker("run", "--detach", "--name", "hotpush-e2e-blog", publish, ...labels, "caddy:2");
      const byContainer = await project.init();
      assert.equal(byContainer.code, 1);
      assert.match(
        byContainer.output,
        /the container hotpush-e2e-blog of the compose project blog in \/srv\/blog has/,
      );
      await project.docker("rm", "--force", "hotpush-e2e-blog");

      await assertWorks();
    });

    test("init that is killed before each of its steps in turn, each time goes on from there", async () => {
      await project.reset();
      for (const [index, [name]] of [...setupSteps, ["the end"]].entries()) {
        const { code, output } = await project.init({ KILLED_BEFORE: String(index) });
        assert.equal(code, 128, `before ${name}: ${output}`);
      }
      await assertWorks();
    });

    /** `init` succeeds, and the server works: the project answers through Caddy, and a signed push is received. */
    async function assertWorks(): Promise<void> {
      await outputOf(project.init());
      await project.type("docker compose up --detach --wait");
      const answer = await fetch(project.appUrl);
      assert.deepEqual([answer.status, answer.headers.get("via")], [200, "1.1 Caddy"]);
      const sent = await project.hotpush("send", "--dry-run");
      assert.equal(sent.code, 0, sent.output);
      assert.match(sent.output, /would deploy/);
    }
  },
  "one server",
);
