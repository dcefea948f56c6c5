import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { parseEnv } from "node:util";
import { githubDelivery } from "../harness/delivery.ts";
import { freePort } from "../harness/listen.ts";
import { until } from "../harness/until.ts";
import { advicesIn, type FirstProject, makeFirstProject } from "../lab/first-project.ts";
import { onEngine } from "../lab/on-engine.ts";

/** Each test runs every command that the output before it names. The next test finds the server as these leave it. */
onEngine(
  "every command that Hotpush advises works on the server as it is",
  (env) => {
    let project: FirstProject;
    let appPort: number;

    before(async () => {
      appPort = await freePort();
      project = await makeFirstProject(env, undefined, appPort);
      await project.reset();
    });
    after(() => project.remove());

    test("after the first init of a project that is up by itself", async () => {
      const { code, output } = await project.init();
      assert.equal(code, 0, output);
      assert.deepEqual(advicesIn(output), ["docker compose up -d", "hotpush send --dry-run"]);
      await follow(output);
      assert.equal(await served(), "by Caddy");
    });

    test("when front does not run, of status and send", async () => {
      await project.docker("stop", "hotpush-front-1");
      const isBad = async () => (await project.hotpush("status")).code === 1;
      await until("status notices", isBad);
      const status = await project.hotpush("status");
      assert.deepEqual(advicesIn(status.output), ["hotpush doctor queue"], status.output);
      const doctor = await project.hotpush("doctor", "queue");
      assert.match(doctor.output, /docker compose --project-directory \S+ up --detach --wait/);
      const sent = await project.hotpush("send");
      assert.equal(sent.code, 1, sent.output);
      assert.equal(advicesIn(sent.output).length, 2, sent.output);
      await follow(sent.output);
      assert.equal((await project.hotpush("send", "--dry-run")).code, 0);
    });

    test("when nothing listens, of send", async () => {
      await project.docker("stop", "hotpush-caddy-1");
      const { code, output } = await project.hotpush("send");
      assert.equal(code, 1);
      await follow(output);
      const answers = async () => (await project.hotpush("send", "--dry-run")).code === 0;
      await until("Caddy has started", answers);
    });

    test("of a queue that is paused", async () => {
      assert.equal((await project.hotpush("pause")).code, 0);
      const { output } = await project.hotpush("send", "--dry-run");
      assert.deepEqual(advicesIn(output), ["hotpush resume"], output);
      await follow(output);
      assert.deepEqual(advicesIn((await project.hotpush("send", "--dry-run")).output), []);
    });

    test("of a rotation of the secret, once the git host uses the new one", async () => {
      const { code, output } = await project.hotpush("secret", "rotate");
      assert.equal(code, 0, output);
      const [advice = "", ...more] = advicesIn(output);
      assert.deepEqual([advice, more], ["hotpush secret drop-previous", []]);
      const early = await project.hotpush("secret", "drop-previous");
      assert.equal(early.code, 1, early.output);
      const settings = parseEnv(await project.type(`cat ${project.files.path}/projects/shop.env`));
      await until("the new secret is read", async () => {
        const { headers, body } = githubDelivery("ping", "{}", settings.WEBHOOK_SECRET);
        const url = settings.WEBHOOK_URL ?? "";
        const answer = await fetch(url, { method: "POST", headers, body: String(body) });
        return answer.status === 200;
      });
      await until("status notices", async () => {
        const { output } = await project.hotpush("status");
        return output.replaceAll(/\s+/g, " ").includes(`: ${advice} --force`);
      });
      await project.type(`${advice} --force`);
    });

    test("of upgrade, after a person has changed a file of the server", async () => {
      await project.type(`echo "# mine" >>${project.files.composeFile}`);
      const { code, output } = await project.hotpush("upgrade");
      assert.equal(code, 1, output);
      assert.match(output, /the same command with --yes\s*$/, output);
      await project.type("hotpush upgrade --yes");
      assert.equal((await project.hotpush("upgrade")).code, 0);
    });

    test("when a deployment keeps the project from being removed", async () => {
      assert.equal((await project.hotpush("send")).code, 0);
      const { code, output } = await project.hotpush("remove", "--yes");
      assert.equal(code, 1, output);
      const advices = advicesIn(output);
      assert.deepEqual(advices, ["hotpush logs -f 1", "hotpush cancel 1"]);
      for (const command of advices.toReversed()) await project.type(command);
    });

    test("of logs before there was a deployment, and of rollback before there is an earlier version", async () => {
      // What was refused before has nothing to deploy against any more.
      await project.type("hotpush deploy");
      await project.type("hotpush history");
      // In containerd's store, what `docker compose up` has built before is another image, which is gone back to.
      const first = await project.hotpush("rollback");
      const { code, output } = first.code === 0 ? await project.hotpush("rollback") : first;
      assert.equal(code, 1, output);
      await follow(output);
    });

    test("after remove, which gives the ports back to the project", async () => {
      const { code, output } = await project.hotpush("remove", "--yes");
      assert.equal(code, 0, output);
      const [up = "", down = "", network = "", init = ""] = advicesIn(output);
      assert.deepEqual(
        [up, down, network, init],
        [
          `cd ${project.checkout} && docker compose up --detach`,
          `cd ${project.checkout} && docker compose down`,
          "docker network rm hotpush-shop",
          "hotpush init",
        ],
      );
      const status = await project.hotpush("status");
      assert.match(status.output, /^Project +shop was removed from this server\. .+: hotpush init$/m);
      await project.type(up);
      await until("the project answers", async () => (await served()) === "by itself");
      await project.type(network);
      await project.type(down);
      // Without a terminal, nobody can be asked.
      await project.type(`${init} --yes`);
      await project.type("docker compose up --detach");
      await until("Caddy serves it again", async () => (await served()) === "by Caddy");
      assert.match((await project.hotpush("history")).output, /\b1\b.+cancelled/);
    });

    /** Runs each command in an output, as a person does who reads it in the checkout. */
    async function follow(output: string): Promise<void> {
      for (const command of advicesIn(output)) await project.type(command);
    }

    async function served(): Promise<"by Caddy" | "by itself" | "not"> {
      const isAnswered = async (url: string) =>
        (await fetch(url, { headers: { connection: "close" } }).catch(() => null))?.status === 200;
      if (await isAnswered(project.appUrl)) return "by Caddy";
      return (await isAnswered(`http://127.0.0.1:${appPort}/`)) ? "by itself" : "not";
    }
  },
  "one server",
);
