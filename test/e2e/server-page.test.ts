import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, chownSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { sendHttp } from "../../src/platform/http.ts";
import type { DoctorCheck } from "../harness/doctor.ts";
import { memoryOf } from "../harness/processes.ts";
import { until } from "../harness/until.ts";
import { makeNewMachine, type Newcomer, type NewMachine } from "../lab/newcomer.ts";
import { onEngine } from "../lab/on-engine.ts";

/** A web service without a health check, and a worker that nobody sends requests to. */
const services = {
  web: { build: "app", restart: "always", ports: ["8080:8080"] },
  worker: { build: "app", restart: "always", expose: ["9100"], command: ["sleep", "infinity"] },
};
const mostBytes = 85 * 1024 ** 2;
const run = promisify(execFile);

onEngine(
  "the page and the doctor of a server",
  (labEnv) => {
    let machine: NewMachine;
    let shop: Newcomer;
    const pageUrl = () => machine.origin.replace("127.0.0.1", "localhost");
    const type = async (command: string) =>
      (await run("bash", ["-c", command], { cwd: shop.checkout, env: shop.env })).stdout;

    before(async () => {
      machine = await makeNewMachine(labEnv);
      shop = await machine.setUp("shop", {}, services);
    });
    after(() => machine?.remove());

    test("without an address there is no page, and init --page adds it", async () => {
      assert.doesNotMatch(await type(`docker logs ${container}`), /page\.started/);
      const output = await type(`hotpush init --yes --page ${pageUrl()}`);
      assert.ok(output.includes(`The page is at ${pageUrl()}. To sign in: hotpush open`), output);
      assert.match(await type(`docker logs ${container}`), /page\.started/);
      await type("hotpush init --check");
      assert.match(await type("hotpush upgrade"), /Everything is up to date/);
    });

    test("requests of a stranger through Caddy end no process", async () => {
      const processes = () =>
        inspect("{{.Name}} {{.State.Pid}} {{.RestartCount}}", "hotpush-run-1", container);
      const before = await processes();
      for (const path of ["/api//", "/api//x/projects", "/api/tokens", "//"])
        assert.equal(Math.floor((await statusAt(path)) / 100), 4, path);
      assert.equal(await statusAt("/health"), 200);
      assert.equal(await processes(), before);
      // It fails if `run` does not answer.
      await type("hotpush status");
    });

    test("the container of front has the spool, the projects and a socket, and no privilege", async () => {
      const mounts = await inspect("{{range .Mounts}}{{.Source}} {{.RW}},{{end}}", container);
      const kinds = mounts.trim().split(",").filter(Boolean);
      assert.deepEqual(kinds.map((mount) => mount.replace(/^\S*\//, "")).sort(), [
        "front true",
        "projects false",
        "socket false",
      ]);
      const inside = (command: string) =>
        type(`docker exec ${container} sh -c '${command} 2>/dev/null || echo none'`);
      const status = await inside("cat /proc/1/status");
      for (const line of [/^Uid:\t(?!0\t)/m, /^CapBnd:\t0+$/m, /^NoNewPrivs:\t1$/m])
        assert.match(status, line);
      assert.match(await inside("touch /usr/new"), /none/);
      assert.match(await inside("ls /var/run/docker.sock /etc/hotpush/secrets"), /none/);
      assert.match(await inside("curl --silent --max-time 3 http://192.0.2.1"), /none/);
    });

    test("an idle front with the page stays small", async (t) => {
      const pid = (await type(`docker top ${container} -o pid,args`)).split("\n");
      const own = pid.find((line) => /main.*front$/.test(line) && !/tini/.test(line));
      const { residentBytes } = memoryOf(Number.parseInt(own ?? "", 10));
      t.diagnostic(`it holds ${(residentBytes / 1024 ** 2).toFixed(1)} MiB`);
      assert.ok(residentBytes < mostBytes, `${residentBytes / 1024 ** 2} MiB`);
    });

    test("lint-healthcheck: warns of each service behind Caddy, and of no other", async () => {
      const { faults } = await check("lint-healthcheck");
      assert.deepEqual(
        faults.map(({ text }) => text.split(" ")[0]),
        ["web"],
      );
    });

    test("sites: a stopped service is found, and started by the command", async () => {
      assert.equal((await check("sites")).outcome, "ok");
      await type("docker compose stop --timeout 1 web");
      await fix("sites", /^web$/);
    });

    test("containers: a stopped run is found, and started by the command", async () => {
      await type("docker stop --timeout 1 hotpush-run-1");
      await fix("containers", /^run$/);
    });

    test("state-directory: a directory of another user is found, and the command helps", async () => {
      assert.equal((await check("state-directory")).outcome, "ok");
      chownSync(machine.state.front, 0, 0);
      chmodSync(machine.state.front, 0o700);
      await fix("state-directory", /^front$/);
    });

    test("state-directory: also while front only restarts, whose last lines say why", async () => {
      chownSync(machine.state.front, 0, 0);
      await type(`docker restart --timeout 1 ${container}`);
      await until("its last lines", async () => {
        const { faults } = await check("containers");
        return faults.some(({ text }) => /^front .*The spool .* cannot be used/.test(text));
      });
      await fix("state-directory", /^front$/);
      await until("front is up", async () => (await check("containers")).outcome === "ok");
    });

    test("caddy: a site that Caddy rejects is found, and passes when it is corrected", async () => {
      const site = join(machine.files.sitesPath, "shop.caddy");
      const good = readFileSync(site, "utf8");
      writeFileSync(site, `${good}\nno such directive {\n`);
      await until("run notices", async () => (await check("caddy")).faults[0]?.severity === "problem");
      writeFileSync(site, good);
      await until("Caddy has the file", async () => (await check("caddy")).outcome === "ok");
    });

    async function check(id: string): Promise<DoctorCheck> {
      const { checks } = JSON.parse(await type(`hotpush doctor --json ${id} || true`));
      return checks[0] ?? assert.fail(id);
    }

    /** The first word of a fault is what it is about. */
    async function fix(id: string, about: RegExp): Promise<void> {
      const { faults } = await check(id);
      assert.equal(faults.length, 1, JSON.stringify(faults));
      const [fault] = faults;
      const words = (fault?.text ?? "").replace(/^No container of /, "").split(" ");
      assert.match(words[0] ?? "", about, fault?.text);
      await type(fault?.command ?? "false");
      assert.deepEqual((await check(id)).faults, []);
    }
    async function inspect(format: string, ...containers: readonly string[]): Promise<string> {
      return await type(`docker inspect --format '${format}' ${containers.join(" ")}`);
    }

    async function statusAt(path: string): Promise<number> {
      const request = { headers: { host: new URL(pageUrl()).host }, timeoutMs: 10_000 };
      return (await sendHttp(new URL(`${machine.origin}${path}`), request)).status;
    }
  },
  "one server",
);

const container = "hotpush-front-1";
