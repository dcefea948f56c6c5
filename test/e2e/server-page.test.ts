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
import { startLoad } from "../lab/load.ts";
import { makeNewMachine, type Newcomer, type NewMachine } from "../lab/newcomer.ts";
import { onEngine } from "../lab/on-engine.ts";
import { dockerIn, endingIn } from "../lab/project.ts";

/** A web service without a health check, and a worker that nobody sends requests to. */
const services = {
  web: { build: "app", restart: "always", ports: ["8080:8080"] },
  worker: { build: "app", restart: "always", expose: ["9100"], command: ["sleep", "infinity"] },
};
/** Ten take some minutes. */
const projectCount = Number(process.env.HOTPUSH_TEST_PROJECTS ?? 2);
/** About ten requests a second at each project, so that two cores have time for the roll-outs. */
const pauseMs = 1_500;
const answersEach = 30;
const endsWithinMs = 120_000;

const healthcheck = { test: ["CMD", "./healthcheck.sh"], interval: "1s" };
/** Caddy serves it too, so it joins the network that the project shares with Caddy of the server. */
const joined = { build: "app", healthcheck, labels: { "hotpush.guard": "0" } };
/** As many, because a name with two containers resolves to each of them in turn. */
const calls = 20;

const mostBytes = 85 * 1024 ** 2;
const run = promisify(execFile);

onEngine(
  "the page, the doctor and the projects of a server",
  (labEnv) => {
    let machine: NewMachine;
    let shop: Newcomer;
    const projects: Newcomer[] = [];
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

    test("projects are set up one after the other, each with the same commands", {
      timeout: 600_000,
    }, async (t) => {
      for (let number = 1; number <= projectCount; number += 1) {
        // Those of two are enough.
        const others = number <= 2 ? { front: joined, caddy: joined, run: joined } : {};
        projects.push(await machine.setUp(`shop-${number}`, others));
        for (const project of [shop, ...projects]) assert.equal(await project.version(), "first");
      }
      const seconds = [shop, ...projects].map(({ initTookMs }) => (initTookMs / 1_000).toFixed(1));
      t.diagnostic(`init took ${seconds.join(", ")} s`);
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
