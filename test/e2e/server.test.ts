import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parseEnv } from "node:util";
import { isPortTaken } from "../../src/platform/listen.ts";
import { memoryOf } from "../harness/processes.ts";
import { until } from "../harness/until.ts";
import { makeNewServer, type NewServer, type TestCheckout } from "../lab/new-server.ts";
import { onEngine } from "../lab/on-engine.ts";

/** Projects of different shapes, as people have them. */
const shapes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  one: {
    "compose.yaml":
      "services:\n  app:\n    build: app\n    restart: unless-stopped\n    ports: ['8080:8080']\n    healthcheck: {test: [CMD, node, healthcheck.js], interval: 1s}\n",
  },
  two: {
    ".env": "GREETING=hello\n",
    "docker-compose.yml":
      "services:\n  web:\n    build: app\n    container_name: two-web\n    ports: ['127.0.0.1:8080:8080']\n    environment: {GREETING: $GREETING}\n  worker:\n    build: app\n    command: [sleep, infinity]\n",
  },
  three: {
    "compose.yaml":
      "services:\n  site:\n    build: app\n    networks: [front]\n    ports: ['80:8080', '9229:9229']\nnetworks: {front: {}}\n",
  },
};

/** HOTPUSH_TEST_PROJECTS=10 takes a minute longer. */
const projectCount = Number(process.env.HOTPUSH_TEST_PROJECTS ?? 4);
/** Both have just taken pushes and run deployments; idle they hold less. */
const mostBytesAfterUse = 170 * 1024 ** 2;

const skip = [80, 443].some(isPortTaken) && "ports 80 and 443 of this machine are taken";

onEngine(
  "the server",
  (labEnv) => {
    let machine: NewServer;
    const checkouts: TestCheckout[] = [];

    before(async () => {
      machine = await makeNewServer(labEnv);
    });
    after(() => machine.remove());

    for (const [name, files] of Object.entries(shapes)) {
      test(`three commands set up project ${name}, and prove it`, { skip }, async (t) => {
        checkouts.push(await setUp(name, files, (text) => t.diagnostic(text)));
      });
    }

    test("a real push to each project is deployed", { skip }, async () => {
      for (const one of checkouts) assert.equal(await one.push(2), 202);
      for (const one of checkouts) {
        await until(`version 2 of ${one.name}`, async () => /version 2 /.test(await one.page()), 120_000);
      }
    });

    test("docker compose down of one project leaves the others and the receiver", { skip }, async () => {
      const [first, ...others] = checkouts as [TestCheckout, ...TestCheckout[]];
      await first.type("docker compose down");
      for (const one of others) assert.match(await one.page(), /version 2 /);
      for (const one of others) assert.match(await one.type("hotpush send --dry-run"), proof);
      await first.type("docker compose up -d");
      await until("the first answers again", async () => /version \d /.test(await first.page()));
    });

    test("running init again changes no byte", { skip }, async () => {
      for (const { type, directory } of checkouts) {
        const before = [...snapshot(machine.path), ...snapshot(directory)];
        assert.match(await type("hotpush init --yes"), proof);
        await type("hotpush init --check");
        assert.deepEqual([...snapshot(machine.path), ...snapshot(directory)], before);
      }
    });

    test("the doctor finds nothing wrong, on the machine and in the container of run", { skip }, async () => {
      const [first] = checkouts as [TestCheckout];
      assert.doesNotMatch(await first.type("hotpush doctor"), fault);
      const report = await first.type(
        `docker exec hotpush-run-1 hotpush doctor --project ${first.name} || true`,
      );
      // The container does not know the names of this test.
      assert.doesNotMatch(report.replace("✗ public-url", ""), fault);
    });

    test("further projects share one Caddy and one Hotpush, which stay small", { skip }, async (t) => {
      await machine.addCheckoutPath();
      for (let number = checkouts.length + 1; number <= projectCount; number += 1) {
        checkouts.push(await setUp(`p${number}`, shapes.one ?? {}, (text) => t.diagnostic(text)));
      }
      for (const one of checkouts) assert.match(await one.page(), /version \d /, one.name);
      const memory = await Promise.all(["front", "run"].map(residentBytes));
      const total = memory.reduce((sum, bytes) => sum + bytes, 0);
      t.diagnostic(`front and run hold ${memory.map(mebibytes).join(" and ")} MiB`);
      assert.ok(total < mostBytesAfterUse, `${mebibytes(total)} MiB`);
    });

    async function setUp(
      name: string,
      files: Readonly<Record<string, string>>,
      report: (text: string) => void,
    ): Promise<TestCheckout> {
      const checkout = await machine.addCheckout(name, files);
      const startMs = performance.now();
      const output = await checkout.type(`hotpush init --yes --url http://${name}.test`);
      const settings = readFileSync(join(machine.path, `projects/${name}.env`), "utf8");
      assert.ok(
        !output.includes(parseEnv(settings).WEBHOOK_SECRET ?? ""),
        "no terminal, so no secret is shown",
      );
      report(`init took ${((performance.now() - startMs) / 1_000).toFixed(1)} s`);
      await checkout.type("docker compose up -d");
      assert.match(await checkout.type("hotpush send --dry-run"), proof);
      await until(`${name} answers`, async () => /version 1 /.test(await checkout.page()));
      return checkout;
    }

    async function residentBytes(service: string): Promise<number> {
      const processes = (await machine.docker("top", `hotpush-${service}-1`, "-o", "pid,args")).split("\n");
      const own = processes.find((line) => /\bnode\b/.test(line) && line.endsWith(`main.ts ${service}`));
      return memoryOf(Number.parseInt(own ?? "", 10)).residentBytes;
    }
  },
  "one server",
);

/** A line of the doctor's report. */
const fault = /^ +[!✗] .*/m;
const proof = /A signed test push reached the service and would deploy [0-9a-f]{7}/;

function mebibytes(bytes: number): string {
  return (bytes / 1024 ** 2).toFixed(0);
}

/** The files of a directory that `init` writes, with mode, owner and content. */
function snapshot(directory: string): readonly string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const written = files.filter(
    (path) => !path.includes("/state/") && (!path.includes("/.git/") || path.endsWith("exclude")),
  );
  return written.sort().map((path) => {
    const { mode, uid, gid } = statSync(path);
    return `${path} ${mode.toString(8)} ${uid}:${gid} ${readFileSync(path, "utf8")}`;
  });
}
