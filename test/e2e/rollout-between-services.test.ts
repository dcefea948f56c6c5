import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sendHttp } from "../../src/platform/http.ts";
import { makeNewMachine, type Newcomer, type NewMachine } from "../lab/newcomers.ts";
import { onEngine } from "../lab/on-engine.ts";
import { endOf } from "../lab/project.ts";
import { spawnHotpush } from "../lab/spawn-hotpush.ts";

const rollouts = 4;
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

    async function rollOut(version: string, number: number) {
      const behaviour = JSON.stringify({ version, behaviour: "dies-on-sigterm" });
      await writeFile(join(shop.checkout, "app", "behaviour.json"), behaviour);
      const args = ["rollout", "--commit", String(number).padStart(40, "0"), "api"];
      return endOf(spawnHotpush(shop.checkout, shop.env, args));
    }
  },
  "one machine part",
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
