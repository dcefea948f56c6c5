import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { startLoad } from "../lab/load.ts";
import { makeNewMachine, type Newcomer, type NewMachine } from "../lab/newcomer.ts";
import { onEngine } from "../lab/on-engine.ts";
import { dockerIn, endingIn } from "../lab/project.ts";

/** Ten take some minutes. */
const projectCount = Number(process.env.HOTPUSH_TEST_PROJECTS ?? 3);
/** About ten requests a second at each project, so that two cores have time for the roll-outs. */
const pauseMs = 1_500;
const answersEach = 30;
const endsWithinMs = 120_000;

const healthcheck = { test: ["CMD", "./healthcheck.sh"], interval: "1s" };
/** Caddy serves it too, so it joins the network that the project shares with Caddy of the server. */
const joined = { build: "app", healthcheck, labels: { "hotpush.guard": "0" } };
/** As many, because a name with two containers resolves to each of them in turn. */
const calls = 20;

onEngine(
  "projects with equal names of services, those of the server's too",
  (env) => {
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
        // Those of two are enough.
        const others = number <= 2 ? { front: joined, caddy: joined, run: joined } : {};
        projects.push(await machine.setUp(`shop-${number}`, others));
        for (const project of projects) assert.equal(await project.version(), "first");
      }
      const [first = 0, ...others] = projects.map(({ initTookMs }) => initTookMs / 1_000);
      t.diagnostic(`init took ${first.toFixed(1)} s, then ${others.map((s) => s.toFixed(1)).join(", ")} s`);
    });

    test("pushes to all at once are deployed, and fail no request of any", {
      timeout: 600_000,
    }, async (t) => {
      const loads = projects.map(({ host }) => startLoad(machine.origin, pauseMs, host));
      const enough = (count: number) => loads.every(({ answers }) => answers.length >= count);
      try {
        await until("answers", () => enough(answersEach), 60_000);
        const ids = await Promise.all(projects.map(({ push, host }) => push(`of-${host}`)));
        const endings = ids.map((id) => endingIn(machine.state.run)(id, endsWithinMs * projectCount));
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
      for (const project of projects)
        for (let call = 0; call < calls; call += 1)
          assert.equal(await project.version(), `of-${project.host}`);
      t.diagnostic(`${count} requests`);
    });

    test("a service that calls another one by its name reaches that of its own project", async () => {
      for (const { host, checkout, env } of projects.slice(0, 2)) {
        for (const service of ["web", "front", "caddy", "run"]) {
          const script = `for (let n = 0; n < ${calls}; n++) console.log((await (await fetch("http://${service}:8080/", { headers: { connection: "close" } })).text()).split(" ")[0])`;
          const node = ["web", "node", "--input-type=module", "--eval", script];
          await until(
            `${service} of ${host} is new`,
            async () => {
              // The container may be the old one, which is just stopped.
              const output = await dockerIn(checkout, env)("compose", "exec", "--no-tty", ...node).catch(
                () => null,
              );
              if (output === null) return false;
              const versions = output.split("\n");
              for (const version of versions) assert.match(version, new RegExp(`^(?:first|of-${host})$`));
              return versions.every((version) => version === `of-${host}`);
            },
            120_000,
          );
        }
      }
    });
  },
  "one server",
);
