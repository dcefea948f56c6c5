import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sendHttp } from "../../src/platform/http.ts";
import { makeNewMachine, type Newcomer, type NewMachine } from "../lab/newcomer.ts";
import { onEngine } from "../lab/on-engine.ts";
import { dockerIn, endOf, spawnHotpush } from "../lab/project.ts";

const rollouts = 4;
const neighbours = "neighbours-of-shop";
const url = "http://api.shop.internal:49080/";
const healthcheck = {
  test: ["CMD", "./healthcheck.sh"],
  interval: "5s",
  start_period: "30s",
  start_interval: "500ms",
};

interface Counted {
  readonly requests: number;
  readonly failures: readonly string[];
  readonly versions: readonly string[];
}

onEngine(
  "requests from one service of a project to another",
  (labEnv) => {
    let machine: NewMachine;
    let shop: Newcomer;

    before(async () => {
      machine = await makeNewMachine(labEnv);
      shop = await machine.setUp("shop", {
        api: { build: "app", healthcheck, labels: { "hotpush.internal": "8080", "hotpush.guard": "0" } },
        client: { build: "app", command: ["sleep", "infinity"], init: true },
      });
    });
    after(() => machine?.remove());

    test(`${rollouts} roll-outs of the service that is called fail none of them`, async (t) => {
      const stop = callFromClient(shop);
      for (let number = 1; number <= rollouts; number += 1) {
        const { code, output } = await rollOut(`version-${number}`, number);
        assert.equal(code, 0, output);
        assert.match(output, /^api\.shop\.internal: [\d,]+ requests, 0 failed/m);
      }
      const { requests, failures, versions } = await stop();
      t.diagnostic(`${requests} requests, ${failures.length} failed`);
      assert.deepEqual(failures.slice(0, 3), []);
      assert.deepEqual(versions, ["first", ...[1, 2, 3, 4].map((number) => `version-${number}`)]);
    });

    test("from outside, that host name gets 404", async () => {
      const { status } = await sendHttp(new URL(machine.origin), { headers: { host: "api.shop.internal" } });
      assert.equal(status, 404);
      const onPort = { host: "api.shop.internal:49080" };
      assert.equal((await sendHttp(new URL(machine.origin), { headers: onPort })).status, 404);
    });

    // As SECURITY.md says: the port is closed to strangers, not to neighbours.
    test("a container of another project that is on a network with Caddy can call it", async () => {
      const docker = dockerIn(shop.checkout, shop.env);
      await docker("network", "create", neighbours);
      try {
        await docker("network", "connect", "--alias", "caddy", neighbours, "hotpush-caddy-1");
        const call = `const name = "api.shop.internal:49080";
          require("node:http").get("http://caddy:49080", { headers: { host: name } }, (answer) => console.log(answer.resume().statusCode));
          require("node:http").get("http://" + name).on("error", ({ code }) => console.log(code));`;
        const node = ["run", "--rm", "--network", neighbours, "node:24-trixie-slim", "node"];
        const lines = (await docker(...node, "--eval", call)).trim().split("\n");
        assert.deepEqual(lines.toSorted(), ["200", "ENOTFOUND"]);
      } finally {
        await docker("network", "disconnect", "--force", neighbours, "hotpush-caddy-1").catch(() => {});
        await docker("network", "rm", neighbours);
      }
    });

    async function rollOut(version: string, number: number) {
      const behaviour = JSON.stringify({ version, behaviour: "dies-on-sigterm" });
      await writeFile(join(shop.checkout, "app", "behaviour.json"), behaviour);
      const args = ["rollout", "--commit", String(number).padStart(40, "0"), "api"];
      return endOf(spawnHotpush(shop.checkout, shop.env, args));
    }
  },
  "one server",
);

/** @returns a function that ends the calls and gives their count */
function callFromClient({ checkout, env }: Newcomer): () => Promise<Counted> {
  const args = ["compose", "exec", "--no-tty", "client", "node", "client.js", url];
  const client = spawn("docker", args, { cwd: checkout, env, stdio: ["pipe", "pipe", "inherit"] });
  const output = client.stdout.setEncoding("utf8").toArray();
  return async () => {
    client.stdin.end();
    return JSON.parse((await output).join(""));
  };
}
