import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chownSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import type { DoctorCheck } from "../harness/doctor.ts";
import { until } from "../harness/until.ts";
import { type Answer, during, fastMixture, measured, startLoad, underLoad } from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";
import { endingIn } from "../lab/project.ts";
import { healthcheck, makeServer, type ServedProject, type Server } from "../lab/server.ts";

/** A service without a health check. */
const web = { build: "app", restart: "always", ports: ["8080:8080"] };
/** Ten take some minutes. */
const projectCount = Number(process.env.HOTPUSH_TEST_PROJECTS ?? 2);
/** About ten requests a second at each project, so that two cores have time for the roll-outs. */
const pauseMs = 1_500;
const endsWithinMs = 120_000;

/** Caddy serves it too, so it joins the network that the project shares with Caddy of the server. */
const joined = { build: "app", healthcheck, labels: { "hotpush.guard": "0" } };
/** As many, because a name with two containers resolves to each of them in turn. */
const calls = 20;

/** Between two requests of a client: about 120 requests a second at each of two neighbours. */
const neighbourPauseMs = 100;
/** Half of what the slow requests of the load take. */
const longestOpeningMs = 1_000;

const run = promisify(execFile);

onEngine(
  "the page, the doctor and the projects of a server",
  (labEnv) => {
    let server: Server;
    let shop: ServedProject;
    let blog: ServedProject;
    const projects: ServedProject[] = [];
    const pageUrl = () => server.origin.replace("127.0.0.1", "localhost");
    const type = async (command: string) =>
      (await run("bash", ["-c", command], { cwd: shop.checkout, env: shop.env })).stdout;

    before(async () => {
      server = await makeServer(labEnv);
      shop = await server.setUp("shop", {}, { web });
    });
    after(() => server?.remove());

    test("without an address there is no page, and init --page adds it", async () => {
      assert.doesNotMatch(await type(`docker logs ${container}`), /page\.started/);
      const output = await type(`hotpush init --yes --page ${pageUrl()}`);
      assert.ok(output.includes(`The page is at ${pageUrl()}. To sign in: hotpush open`), output);
      assert.match(await type(`docker logs ${container}`), /page\.started/);
      assert.match(await type("hotpush upgrade"), /Everything is up to date/);
    });

    test("the container of front has the spool, the projects and a socket, and no privilege", async () => {
      const mounts = await type(
        `docker inspect --format '{{range .Mounts}}{{.Source}} {{.RW}},{{end}}' ${container}`,
      );
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
      for (const path of ["/var/run/docker.sock", "/etc/hotpush/secrets"])
        assert.equal((await inside(`ls ${path}`)).trim(), "none");
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

    test("state-directory: that of front is found if it is another user's, also by front's last lines", async () => {
      assert.equal((await check("state-directory")).outcome, "ok");
      chownSync(server.state.front, 0, 0);
      await type(`docker restart --timeout 1 ${container}`);
      await until("its last lines", async () => {
        const { faults } = await check("containers");
        return faults.some(({ text }) => /^front .*The spool .* cannot be used/.test(text));
      });
      await fix("state-directory", /^front$/);
      await until("front is up", async () => (await check("containers")).outcome === "ok");
    });

    test("caddy: a site that Caddy rejects is found, the old one stays in force, and the status says why", async () => {
      const good = readFileSync(shop.siteFile, "utf8");
      writeFileSync(shop.siteFile, `${good}\nhttp://127.0.0.99 {\n\tnonsense\n}\n`);
      await until("run notices", async () => (await check("caddy")).faults[0]?.severity === "problem");
      const [fault = ""] = (await server.status()).serverFaults;
      assert.match(fault, /rejects its configuration and keeps the old one.*sites\/shop\.caddy.*nonsense/s);
      assert.equal(await shop.version(), "first");
      writeFileSync(shop.siteFile, good);
      await until("Caddy has the file", async () => (await check("caddy")).outcome === "ok");
      assert.deepEqual((await server.status()).serverFaults, []);
    });

    test("a Caddy that is recreated is on all networks again, and its own one stays its gateway", async () => {
      await server.compose("up", "--detach", "--force-recreate", "caddy");
      await server.untilJoined(["shop"]);
      await shop.untilServed();
      const gateway = ["--format", "{{(index .IPAM.Config 0).Gateway}}"];
      assert.equal(await defaultRoute(), await server.docker("network", "inspect", "hotpush", ...gateway));
    });

    test("joining and leaving the networks of 49 projects fails no request of another one", async () => {
      const names = Array.from({ length: 49 }, (_, index) => `many-${index}`);
      // Without a site, which would cost a reload.
      const files = names.map((name) => join(server.files.projectsPath, `${name}.env`));
      const settings = `REPO_PATH=${shop.checkout}\nWEBHOOK_SECRET=${shop.secret}\nCATCH_UP_INTERVAL=0\n`;
      await underLoad(shop.origin, async () => {
        for (const file of files) writeFileSync(file, settings);
        await server.untilJoined(["shop", ...names], 60_000);
        for (const file of files) rmSync(file);
        await server.untilJoined(["shop"], 60_000);
      });
    });

    test("projects are set up one after the other, each with the same commands", {
      timeout: 600_000,
    }, async () => {
      for (let number = 1; number <= projectCount; number += 1) {
        // Those of two are enough.
        const others = number <= 2 ? { front: joined, caddy: joined, run: joined } : {};
        projects.push(await server.setUp(`shop-${number}`, others));
        for (const project of [shop, ...projects]) assert.equal(await project.version(), "first");
      }
    });

    test("pushes to all at once are deployed, and fail no request of any", {
      timeout: 600_000,
    }, async (t) => {
      const loads = projects.map(({ origin }) => startLoad(origin, pauseMs));
      const results = await during(loads, async () => {
        const ids = await Promise.all(projects.map(({ push, name }) => push(`of-${name}`)));
        const endings = ids.map((id) => endingIn(server.state.run)(id, endsWithinMs * projectCount));
        assert.deepEqual([...new Set(await Promise.all(endings))], ["succeeded"]);
      });
      for (const project of projects)
        for (let call = 0; call < calls; call += 1)
          assert.equal(await project.version(), `of-${project.name}`);
      t.diagnostic(`${results.map(({ answers }) => answers.length).join(", ")} requests`);
    });

    test("a service that calls another one by its name reaches that of its own project", async () => {
      for (const { name, compose } of projects.slice(0, 2)) {
        for (const service of ["web", "front", "caddy", "run"]) {
          const script = `for (let n = 0; n < ${calls}; n++) console.log((await (await fetch("http://${service}:8080/", { headers: { connection: "close" } })).text()).split(" ")[0])`;
          const node = ["web", "node", "--input-type=module", "--eval", script];
          await until(
            `${service} of ${name} is new`,
            async () => {
              // The container may be the old one, which is just stopped.
              const output = await compose("exec", "--no-tty", ...node).catch(() => null);
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

    test("a project that is set up costs its neighbours no more than one reload", async () => {
      const lost = await lostDuring(async () => {
        blog = await server.setUp("blog");
      });
      assertOneReload(lost);
    });

    test("deploying, rolling back and stopping a project costs its neighbours nothing", async () => {
      const names = [readFileSync(blog.liveFile, "utf8")];
      const lost = await lostDuring(async () => {
        for (const version of ["second", "third"])
          assert.equal(await endingIn(server.state.run)(await blog.push(version)), "succeeded");
        names.push(readFileSync(blog.liveFile, "utf8"));
        const { code, output } = await blog.hotpush("rollback");
        assert.equal(code, 0, output);
        names.push(readFileSync(blog.liveFile, "utf8"));
        await blog.compose("down", "--timeout", "1");
      });
      assert.deepEqual(lost.slice(0, 3), [], `${lost.length} requests failed`);
      assert.equal(new Set(names).size, 3);
    });

    test("after down and up by a person, a stale live file costs the next deployment no request", async () => {
      await blog.compose("up", "--detach", "--wait");
      const { versions } = await underLoad(blog.origin, async () => {
        assert.equal(await endingIn(server.state.run)(await blog.push("fourth")), "succeeded");
      });
      assert.equal(versions.at(-1), "fourth");
      await blog.compose("down", "--timeout", "1");
    });

    test("a project that is removed costs its neighbours no more than one reload", async () => {
      const lost = await lostDuring(async () => {
        const { code, output } = await blog.hotpush("remove", "--yes");
        assert.equal(code, 0, output);
        await until("the end of its site", async () => (await fetch(blog.origin)).status === 404);
      });
      assertOneReload(lost);
      assert.deepEqual((await server.status()).serverFaults, []);
    });

    /** Does `work` under load on two neighbours. @returns what their clients have not got */
    async function lostDuring(work: () => Promise<void>): Promise<readonly Answer[]> {
      const loads = projects.slice(0, 2).map(({ origin }) => startLoad(origin, neighbourPauseMs));
      return (await measured(loads, work, 100)).flatMap(({ failures }) => failures);
    }

    async function defaultRoute(): Promise<string> {
      const table = await server.compose("exec", "--no-tty", "caddy", "cat", "/proc/net/route");
      const rows = table.split("\n").map((line) => line.split("\t"));
      const [, , hex = ""] = rows.find(([, to]) => to === "00000000") ?? [];
      return Buffer.from(hex, "hex").reverse().join(".");
    }

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
  },
  "one server",
);

const container = "hotpush-front-1";

/**
 * A reload can cost each client the connection that it is just opening, but next to none if the machine has time:
 * docs/how-it-works.md has figures. A request that is being answered goes on.
 */
function assertOneReload(lost: readonly Answer[]): void {
  const shown = JSON.stringify(lost);
  assert.ok(lost.length <= 2 * fastMixture.reduce((sum, { count }) => sum + count, 0), shown);
  assert.ok(
    lost.every(({ latencyMs }) => latencyMs < longestOpeningMs),
    shown,
  );
  assert.ok(
    lost.every(({ failure }) => /socket hang up|ECONNRESET/.test(failure ?? "")),
    shown,
  );
}
