import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sendHttp } from "../../src/platform/http.ts";
import { isPortTaken } from "../../src/platform/listen.ts";
import { memoryOf } from "../harness/processes.ts";
import { until } from "../harness/until.ts";
import { makeNewServer, type NewServer, type TestCheckout } from "../lab/new-server.ts";
import { onEngine } from "../lab/on-engine.ts";

const compose =
  "services:\n  app:\n    build: app\n    ports: ['8080:8080']\n    healthcheck: {test: [CMD, node, healthcheck.js], interval: 1s}\n";
const pageUrl = "http://localhost";
const mostBytes = 85 * 1024 ** 2;

const skip = [80, 443].some(isPortTaken) && "ports 80 and 443 of this machine are taken";

onEngine(
  "the page of the server",
  (labEnv) => {
    let machine: NewServer;
    let shop: TestCheckout;

    before(async () => {
      machine = await makeNewServer(labEnv);
      shop = await machine.addCheckout("shop", { "compose.yaml": compose });
    });
    after(() => machine.remove());

    test("without an address there is no page, and init --page adds it", { skip }, async () => {
      await shop.type("hotpush init --yes --url http://shop.test");
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

    test("the doctor sees a front that does not run, and init starts it again", { skip }, async () => {
      assert.doesNotMatch(await shop.type("hotpush doctor || true"), /front does not run/);
      await machine.docker("stop", "--time", "1", container);
      assert.match(await shop.type("hotpush doctor || true"), /front does not run \(exited\)/);
      await shop.type("hotpush init --yes");
      assert.doesNotMatch(await shop.type("hotpush doctor || true"), /front does not run/);
    });

    test("an idle front with the page stays small", { skip }, async (t) => {
      const pid = (await machine.docker("top", container, "-o", "pid,args")).split("\n");
      const own = pid.find((line) => /main.*front$/.test(line) && !/tini/.test(line));
      const { residentBytes } = memoryOf(Number.parseInt(own ?? "", 10));
      t.diagnostic(`it holds ${(residentBytes / 1024 ** 2).toFixed(1)} MiB`);
      assert.ok(residentBytes < mostBytes, `${residentBytes / 1024 ** 2} MiB`);
    });
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
