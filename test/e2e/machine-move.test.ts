import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { HistoryJson } from "../../src/control/history.ts";
import { runCli } from "../harness/cli.ts";
import { githubPush } from "../harness/delivery.ts";
import { freePort } from "../harness/free-port.ts";
import { until } from "../harness/until.ts";
import { git, makeRemote } from "../lab/newcomer.ts";
import { onOwnEngine } from "../lab/on-engine.ts";

const run = promisify(execFile);
const longestGapMs = 3_000;
const pollMs = 20;

// The engine has only one machine part.
onOwnEngine("alone", "a project with a Hotpush of its own moves to the machine part", (labEnv) => {
  let directory: string;
  let checkout: string;
  let env: NodeJS.ProcessEnv;
  let port: number;
  let secret: string;
  const docker = async (...args: readonly string[]) =>
    (await run("docker", args, { cwd: checkout, env })).stdout.trim();
  const hotpush = async (...args: readonly string[]) => {
    const ending = await runCli(args, { cwd: checkout, env });
    assert.equal(ending.code, 0, `hotpush ${args.join(" ")}: ${ending.stdout}${ending.stderr}`);
    return ending.stdout;
  };
  const history = async () =>
    (JSON.parse(await hotpush("history", "--json")) as HistoryJson).deployments.toReversed();
  const page = () => ask(port, "/");
  const inOldHotpush = (...args: readonly string[]) =>
    docker("compose", "exec", "--no-TTY", "hotpush", "hotpush", ...args);

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), "hotpush-move-"));
    [port] = [await freePort()];
    await makeRemote(directory, String(port));
    checkout = join(directory, basename(directory).toLowerCase());
    await git(directory, "clone", "--quiet", "remote.git", basename(checkout));
    env = {
      ...labEnv,
      MACHINE_PATH: join(directory, "machine"),
      HTTP_PORT: String(await freePort()),
      HTTPS_PORT: String(await freePort()),
    };
    await docker("compose", "up", "--detach", "--build", "--wait");
    await hotpush("init", "--alone", "--yes", "--url", `http://127.0.0.1:${port}`);
    await docker("compose", "up", "--detach", "--wait");
    secret = /^WEBHOOK_SECRET=(.*)$/m.exec(await readFile(join(checkout, ".env"), "utf8"))?.[1] ?? "";
    for (const version of [2, 3]) await deployVersion(version);
    await docker("compose", "exec", "caddy", "mkdir", "-p", "/data/caddy/certificates/local");
    await docker("compose", "exec", "caddy", "sh", "-c", "echo old >/data/caddy/certificates/local/shop.crt");
  });
  after(async () => {
    const machine = join(directory, "machine");
    const ofMachine = ["compose", "--project-directory", machine, "down", "--timeout", "1"];
    if (existsSync(machine)) await docker(...ofMachine).catch(() => {});
    await docker(
      "compose",
      "down",
      "--volumes",
      "--rmi",
      "local",
      "--timeout",
      "1",
      "--remove-orphans",
    ).catch(() => {});
    await docker("network", "prune", "--force").catch(() => {});
    await rm(directory, { recursive: true, force: true });
  });

  test("if the site would not answer as before, everything goes back", async () => {
    const { code, stdout, stderr } = await runCli(["init", "--yes", "--at", "app=other.example.org"], {
      ...{ cwd: checkout, env },
    });
    assert.equal(code, 1, stdout);
    assert.match(stderr, /does not answer\s+through the new Caddy\. The project was not moved/);
    assert.match((await page()).text, /version 3 /);
    assert.equal(JSON.parse(await inOldHotpush("status", "--json")).running, null);
    assert.equal(existsSync(join(directory, "machine/projects", `${basename(checkout)}.env`)), false);
    assert.match(readFileSync(join(checkout, ".env"), "utf8"), /^WEBHOOK_SECRET=/m);
  });

  test("it is moved under load, in a gap of at most 3 s, and the app is not restarted", async (t) => {
    const app = await docker("compose", "ps", "--quiet", "app");
    const load = startPolling(port);
    t.after(() => load.stop());
    const printed = await hotpush("init", "--yes");
    await sleep(500);
    const { count, failures, longestMs } = await load.stop();
    t.diagnostic(printed);
    t.diagnostic(
      `${failures.length} of ${count} requests failed: nothing answered for ${Math.round(longestMs)} ms`,
    );
    assert.match(printed, /at most 3 s/);
    assert.ok(longestMs < longestGapMs, `nothing answered for ${longestMs} ms`);
    assert.equal(await docker("compose", "ps", "--quiet", "app"), app);
    assert.match((await page()).text, /version 3 /);
  });

  test("history, logs, secret and certificates have come along", async () => {
    const deployments = await history();
    assert.deepEqual(
      deployments.map(({ state }) => state),
      ["succeeded", "succeeded"],
    );
    assert.match(await hotpush("logs", String(deployments[0]?.id)), /==>/);
    const settings = readFileSync(join(directory, "machine/projects", `${basename(checkout)}.env`), "utf8");
    assert.match(settings, new RegExp(`^WEBHOOK_SECRET=${secret}$`, "m"));
    assert.doesNotMatch(readFileSync(join(checkout, ".env"), "utf8"), /WEBHOOK|SITE|HOTPUSH_/);
    const certificate = join(directory, "machine/state/caddy/caddy/certificates/local/shop.crt");
    assert.equal(readFileSync(certificate, "utf8"), "old\n");
  });

  test("a roll back reaches a version from before the move, and a push is deployed", async () => {
    await hotpush("rollback");
    assert.match((await page()).text, /version 2 /);
    await deployVersion(4);
    assert.match((await page()).text, /version 4 /);
    const states = (await history()).map(({ trigger, state }) => `${trigger} ${state}`);
    assert.deepEqual(states, ["push succeeded", "push succeeded", "rollback succeeded", "push succeeded"]);
  });

  test("a second init changes nothing", async () => {
    const ending = await runCli(["init", "--check"], { cwd: checkout, env });
    assert.equal(ending.code, 0, ending.stdout + ending.stderr);
  });

  async function deployVersion(version: number): Promise<void> {
    const clone = join(directory, "developer");
    const server = join(clone, "app/server.js");
    await writeFile(server, (await readFile(server, "utf8")).replace(/version \d+/, `version ${version}`));
    const start = await git(clone, "rev-parse", "HEAD");
    await git(clone, "commit", "--quiet", "--all", "--message", `Version ${version}`);
    await git(clone, "push", "--quiet", "origin", "main");
    const end = await git(clone, "rev-parse", "HEAD");
    const { status, text } = await ask(port, "/webhook", githubPush({ before: start, after: end }, secret));
    assert.equal(status, 202, text);
    const served = async () => (await page()).text.includes(`version ${version} `);
    await until(`version ${version} is served`, served, 180_000);
    await until("the deployment has ended", async () => !(await isRunning()), 120_000);
  }

  async function isRunning(): Promise<boolean> {
    const isMoved = existsSync(join(directory, "machine/projects", `${basename(checkout)}.env`));
    // While the old Hotpush replaces its own container, a command in it is cut off: it still works.
    const old = () => inOldHotpush("status", "--json").catch(() => null);
    const status = isMoved ? await hotpush("status", "--json") : await old();
    return status === null || JSON.parse(status).running !== null;
  }
});

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** One request to this machine, on a connection of its own. */
function ask(port: number, path: string, delivery?: ReturnType<typeof githubPush>): Promise<Answer> {
  const headers = delivery?.headers;
  const method = delivery ? "POST" : "GET";
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
    });
    sent.on("error", reject);
    sent.end(delivery?.body);
  });
}

/** Fifty new requests a second, without a retry. */
function startPolling(port: number) {
  const failures: string[] = [];
  let [count, longestMs, lastGoodMs] = [0, 0, performance.now()];
  const one = async () => {
    count += 1;
    const answer = await ask(port, "/").catch((error: Error) => ({ status: 0, text: error.message }));
    if (answer.status !== 200) return failures.push(`${answer.status} ${answer.text}`);
    longestMs = Math.max(longestMs, performance.now() - lastGoodMs);
    lastGoodMs = performance.now();
    return 0;
  };
  const asked: Promise<unknown>[] = [];
  const timer = setInterval(() => asked.push(one()), pollMs);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(asked);
      longestMs = Math.max(longestMs, performance.now() - lastGoodMs);
      return { count, failures, longestMs };
    },
  };
}
