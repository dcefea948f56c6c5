import assert from "node:assert/strict";
import { chmodSync, chownSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isPortTaken } from "../../src/platform/listen.ts";
import type { DoctorCheck } from "../harness/doctor.ts";
import { until } from "../harness/until.ts";
import { makeNewServer, type NewServer, type TestCheckout } from "../lab/new-server.ts";
import { onEngine } from "../lab/on-engine.ts";

/** Two web services without a health check, and a worker that nobody sends requests to. */
const compose = `services:
  web:
    build: app
    restart: always
    ports: ["8080:8080"]
  api:
    build: app
    restart: always
    ports: ["8081:8080"]
  worker:
    build: app
    restart: always
    expose: ["9100"]
    command: [sleep, infinity]
`;
const skip = [80, 443].some(isPortTaken) && "ports 80 and 443 of this machine are taken";

onEngine(
  "the doctor of a server",
  (labEnv) => {
    let machine: NewServer;
    let shop: TestCheckout;
    const frontState = () => join(machine.path, "state/front");

    before(async () => {
      machine = await makeNewServer(labEnv);
      shop = await machine.addCheckout("shop", { "compose.yaml": compose });
      if (skip) return;
      await shop.type("hotpush init --yes --url http://shop.test");
      await shop.type("docker compose up --detach");
      await until("the project", async () => /version 1 /.test(await shop.page()));
    });
    after(() => machine.remove());

    test("lint-healthcheck: warns of each service behind Caddy, and of no other", { skip }, async () => {
      const { faults } = await check("lint-healthcheck");
      assert.deepEqual(faults.map(({ text }) => text.split(" ")[0]).sort(), ["api", "web"]);
    });

    test("sites: a stopped service is found, and started by the command", { skip }, async () => {
      assert.equal((await check("sites")).outcome, "ok");
      await shop.type("docker compose stop --timeout 1 web");
      await fix("sites", /^web$/);
    });

    test("containers: a stopped run is found, and started by the command", { skip }, async () => {
      await machine.docker("stop", "--timeout", "1", "hotpush-run-1");
      await fix("containers", /^run$/);
    });

    test("state-directory: a directory of another user is found, and the command helps", {
      skip,
    }, async () => {
      assert.equal((await check("state-directory")).outcome, "ok");
      chownSync(frontState(), 0, 0);
      chmodSync(frontState(), 0o700);
      await fix("state-directory", /^front$/);
    });

    test("state-directory: also while front only restarts, whose last lines say why", {
      skip,
    }, async () => {
      chownSync(frontState(), 0, 0);
      await machine.docker("restart", "--timeout", "1", "hotpush-front-1");
      await until("its last lines", async () => {
        const { faults } = await check("containers");
        return faults.some(({ text }) => /^front .*The spool .* cannot be used/.test(text));
      });
      await fix("state-directory", /^front$/);
      await until("front is up", async () => (await check("containers")).outcome === "ok");
    });

    test("caddy: a site that Caddy rejects is found, and passes when it is corrected", { skip }, async () => {
      const site = join(machine.path, "sites/shop.caddy");
      const good = readFileSync(site, "utf8");
      writeFileSync(site, `${good}\nno such directive {\n`);
      await until("run notices", async () => (await check("caddy")).faults[0]?.severity === "problem");
      writeFileSync(site, good);
      await until("Caddy has the file", async () => (await check("caddy")).outcome === "ok");
    });

    async function check(id: string): Promise<DoctorCheck> {
      const { checks } = JSON.parse(await shop.type(`hotpush doctor --json ${id} || true`));
      return checks[0] ?? assert.fail(id);
    }

    /** The first word of a fault is what it is about. */
    async function fix(id: string, about: RegExp): Promise<void> {
      const { faults } = await check(id);
      assert.equal(faults.length, 1, JSON.stringify(faults));
      const [fault] = faults;
      const words = (fault?.text ?? "").replace(/^No container of /, "").split(" ");
      assert.match(words[0] ?? "", about, fault?.text);
      await shop.type(fault?.command ?? "false");
      assert.deepEqual((await check(id)).faults, []);
    }
  },
  "one server",
);
