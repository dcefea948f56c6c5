import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { makeSshKey } from "../harness/repository.ts";
import { until } from "../harness/until.ts";
import { advicesIn, type FirstProject, makeFirstProject } from "../lab/first-project.ts";
import { onEngine } from "../lab/on-engine.ts";

/** As a developer in a clone of the project. */
const git = "git -C ../developer -c user.name=Ada -c user.email=ada@example.com";

interface Ended {
  readonly state: string;
  readonly problem: { readonly code: string; readonly detail: string } | null;
}

/** Each test makes a deployment fail, and runs what its log advises. Then a deployment succeeds again. */
onEngine(
  "what a failed deployment advises makes the next one succeed",
  (env) => {
    let project: FirstProject;

    before(async () => {
      project = await makeFirstProject(env);
      await project.reset();
      const { code, output } = await project.init();
      assert.equal(code, 0, output);
      await project.type("docker compose down && docker compose up --detach");
      await deploys();
    });
    after(() => project.remove());

    test("a network whose part of the compose file has changed", async () => {
      await develop(
        "echo '//' >>../developer/app/server.js; printf 'networks:\\n  default:\\n    labels:\\n      a: b\\n' >>../developer/compose.yaml",
      );
      const advices = await failsWith("script_failed");
      assert.deepEqual(advices, ["docker compose down && docker compose up -d"]);
      await follow(advices);
      await deploys();
    });

    test("a roll-out by hand while run is away, and its directories are gone", async () => {
      for (const directory of ["live", "projects"]) {
        await project.docker("stop", "hotpush-run-1");
        await project.type(`rm -r ${project.files.path}/state/${directory}/shop`);
        const { code, output } = await project.hotpush("rollout");
        assert.equal(code, 1, output);
        const advices = advicesIn(output);
        assert.deepEqual(advices, ["docker start hotpush-run-1"], output);
        await follow(advices);
        await until(
          "the roll-out is possible",
          async () => (await project.hotpush("rollout")).code === 0,
          20_000,
        );
      }
    });

    test("a branch that BRANCH does not name any more", async () => {
      assert.equal((await project.hotpush("pause")).code, 0);
      await develop("echo '//' >>../developer/app/server.js");
      const { code } = await project.hotpush("send");
      assert.equal(code, 0);
      await project.type(`${git} push --quiet origin main:master`);
      await set("BRANCH=master");
      await project.docker("restart", "hotpush-run-1");
      await until("run has read it", async () => (await project.hotpush("history")).code === 0);
      await project.type("hotpush resume");
      const advices = await failedWith("branch_not_selected");
      assert.deepEqual(advices, ["hotpush deploy"]);
      await follow(advices);
      await set("BRANCH=main");
      await deploys();
    });

    test("a commit that is not signed, and keys that cannot be read", async (t) => {
      const key = makeSshKey(t);
      const signers = `${project.files.path}/signers`;
      await project.type(`echo 'ada@example.com ${key.publicKey}' >${signers}`);
      await set(`ALLOWED_SIGNERS=${signers}`);
      assert.deepEqual(await failsWith("commit_unsigned"), []);
      const signed = `${git} ${key.gitOptions.join(" ")} commit --quiet --allow-empty --message signed`;
      await project.type(`${signed} && ${git} push --quiet origin main`);
      await deploys();
      // The branch is put back and goes on otherwise.
      await project.type(
        `${git} reset --quiet --soft HEAD~1 && ${signed} && ${git} push --quiet --force origin main`,
      );
      assert.equal((await project.hotpush("send")).code, 0);
      const advices = await failedWith("branch_diverged");
      assert.deepEqual(advices, ["hotpush deploy main"]);
      await follow(advices);
      await project.type(`rm ${signers}`);
      assert.deepEqual(await failsWith("signers_unusable"), []);
    });

    async function develop(change: string): Promise<void> {
      await project.type(change);
      await project.type(
        `${git} add --all && ${git} commit --quiet --message Change && ${git} push --quiet origin main`,
      );
    }

    /** Adds a line to the project's file, and waits until `run` has read it. */
    async function set(line: string): Promise<void> {
      const [name] = line.split("=");
      const file = `${project.files.path}/projects/shop.env`;
      await project.type(`sed -i '/^${name}=/d' ${file} && echo '${line}' >>${file}`);
    }

    async function deploys(): Promise<void> {
      const { code, output } = await project.hotpush("deploy");
      assert.equal(code, 0, output);
    }

    /** @returns the commands that the deployment's log and its history advise */
    async function failsWith(problem: string): Promise<readonly string[]> {
      await until("a deployment fails", async () => (await project.hotpush("deploy")).code === 1, 20_000);
      return await failedWith(problem);
    }

    async function failedWith(code: string): Promise<readonly string[]> {
      const [last] = await until("the deployment has ended", async () => {
        const { output } = await project.hotpush("history", "--json", "--limit", "1");
        const found: readonly Ended[] = JSON.parse(output).deployments;
        return found.some(({ state }) => ["queued", "running"].includes(state)) ? null : found;
      });
      assert.equal(last?.problem?.code, code, JSON.stringify(last));
      return advicesIn(last?.problem?.detail ?? "");
    }

    async function follow(advices: readonly string[]): Promise<void> {
      for (const command of advices) await project.type(command);
    }
  },
  "one server",
);
