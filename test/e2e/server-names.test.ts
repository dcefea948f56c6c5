import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { makeNewMachine, type Newcomer, type NewMachine } from "../lab/newcomer.ts";
import { onEngine } from "../lab/on-engine.ts";
import { dockerIn } from "../lab/project.ts";

const healthcheck = { test: ["CMD", "./healthcheck.sh"], interval: "1s" };
/** It joins the network that the project shares with Caddy of the server. */
const joined = { build: "app", healthcheck, labels: { "hotpush.internal": "8080" } };
/** As many, because a name with two containers resolves to each of them in turn. */
const calls = 20;

onEngine(
  "two projects with equal names of services, those of the server's too",
  (labEnv) => {
    let machine: NewMachine;
    const projects = new Map<string, Newcomer>();

    before(async () => {
      machine = await makeNewMachine(labEnv);
      for (const name of ["shop", "blog"]) {
        projects.set(name, await machine.setUp(name, { front: joined, caddy: joined, run: joined }));
      }
    });
    after(() => machine?.remove());

    test("each project answers at its own address, also after deployments of both", async () => {
      for (const [name, project] of projects) await project.push(`of-${name}`);
      for (const [name, project] of projects) {
        await until(`${name} is live`, async () => (await project.version()) === `of-${name}`, 240_000);
        for (let call = 0; call < calls; call += 1) assert.equal(await project.version(), `of-${name}`);
      }
    });

    test("a service that calls another one by its name reaches that of its own project", async () => {
      for (const [name, { checkout, env }] of projects) {
        for (const service of ["web", "front", "caddy", "run"]) {
          const script = `for (let n = 0; n < ${calls}; n++) console.log((await (await fetch("http://${service}:8080/", { headers: { connection: "close" } })).text()).split(" ")[0])`;
          const command = [
            "compose",
            "exec",
            "--no-tty",
            "web",
            "node",
            "--input-type=module",
            "--eval",
            script,
          ];
          await until(
            `${service} of ${name} is new`,
            async () => {
              // The container may be the old one, which is just stopped.
              const output = await dockerIn(checkout, env)(...command).catch(() => null);
              if (output === null) return false;
              const versions = output.split("\n");
              for (const version of versions) assert.match(version, new RegExp(`^(?:first|of-${name})$`));
              return versions.every((version) => version === `of-${name}`);
            },
            120_000,
          );
        }
      }
    });
  },
  "one server",
);
