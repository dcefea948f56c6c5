import assert from "node:assert/strict";
import { chmodSync, chownSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sendHttp } from "../../src/platform/http.ts";
import { isPortTaken } from "../../src/platform/listen.ts";
import type { DoctorCheck } from "../harness/doctor.ts";
import { memoryOf } from "../harness/processes.ts";
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
const pageUrl = "http://localhost";
const mostBytes = 85 * 1024 ** 2;
const skip = [80, 443].some(isPortTaken) && "ports 80 and 443 of this machine are taken";

onEngine(
  "the page and the doctor of a server",
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

    test("without an address there is no page, and init --page adds it", { skip }, async () => {
      assert.doesNotMatch(await machine.docker("logs", container), /page\.started/);
      const output = await shop.type(`hotpush init --yes --page ${pageUrl}`);
      assert.match(output, /The page is at http:\/\/localhost\. To sign in: hotpush open/);
      assert.match(await machine.docker("logs", container), /page\.started/);
      await shop.type("hotpush init --check");
      assert.match(await shop.type("hotpush upgrade --check"), /Everything is up to date/);
    });

    test("one command and one click lead to a signed-in page", { skip }, async () => {
      const link = new URL(/http\S+/.exec(await shop.type("hotpush open"))?.[0] ?? "");
      await until("the site", async () => (await visit(link.pathname + link.search)).status === 200);
      const cookie = await click(link);
      assert.match((await visit("/", { cookie })).text, /<a href="\/projects\/shop">shop<\/a>/);
      assert.equal((await visit("/")).status, 401);
    });

    test("requests of a stranger through Caddy end no process", { skip }, async () => {
      const format = "{{.Name}} {{.State.Pid}} {{.RestartCount}}";
      const processes = () => machine.docker("inspect", "--format", format, "hotpush-run-1", container);
      const before = await processes();
      for (const path of ["/api//", "/api//x/projects", "/api/tokens", "//"])
        assert.equal(Math.floor((await visit(path)).status / 100), 4, path);
      assert.equal((await visit("/health")).status, 200);
      assert.equal(await processes(), before);
      // It fails if `run` does not answer.
      await shop.type("hotpush status");
    });

    test("the container of front has the spool, the projects and a socket, and nothing else of the machine", {
      skip,
    }, async () => {
      const format =
        "{{range .Mounts}}{{.Source}} {{.RW}},{{end}} {{.HostConfig.ReadonlyRootfs}} {{.Config.User}}";
      const [mounts, isReadOnly, user] = (
        await machine.docker("inspect", "--format", format, container)
      ).split(/, /);
      const kinds = (mounts ?? "")
        .split(",")
        .map((mount) => mount.replace(/^\S*\//, ""))
        .sort();
      assert.deepEqual(kinds, ["front true", "projects false", "socket false"]);
      assert.match(`${isReadOnly} ${user ?? ""}`, /^true 9000:9000|^true \d+:\d+/);
      const inside = (command: string) =>
        machine.docker("exec", container, "sh", "-c", `${command} || echo none`);
      assert.match(await inside("ls /var/run/docker.sock /etc/hotpush/secrets 2>/dev/null"), /none/);
      assert.match(await inside("curl --silent --max-time 3 http://192.0.2.1"), /none/);
    });

    test("an idle front with the page stays small", { skip }, async (t) => {
      const pid = (await machine.docker("top", container, "-o", "pid,args")).split("\n");
      const own = pid.find((line) => /main.*front$/.test(line) && !/tini/.test(line));
      const { residentBytes } = memoryOf(Number.parseInt(own ?? "", 10));
      t.diagnostic(`it holds ${(residentBytes / 1024 ** 2).toFixed(1)} MiB`);
      assert.ok(residentBytes < mostBytes, `${residentBytes / 1024 ** 2} MiB`);
    });

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

const container = "hotpush-front-1";

async function visit(path: string, headers: Readonly<Record<string, string>> = {}) {
  const { status, body } = await sendHttp(new URL(`http://127.0.0.1${path}`), {
    headers: { host: "localhost", ...headers },
    timeoutMs: 10_000,
  });
  return { status, text: String(body) };
}

/** @returns the cookie of the session that the link's button opens */
async function click(link: URL): Promise<string> {
  const { status, headers } = await sendHttp(new URL("http://127.0.0.1/sign-in"), {
    method: "POST",
    headers: { host: "localhost", origin: pageUrl },
    body: String(new URLSearchParams({ link: link.searchParams.get("link") ?? "" })),
    timeoutMs: 10_000,
  });
  assert.equal(status, 303);
  return headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
}
