import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { sendHttp } from "../../src/platform/http.ts";
import { githubPush } from "../harness/delivery.ts";
import { hostToken } from "../harness/fake-git-host.ts";
import { until } from "../harness/until.ts";
import { type CleanServer, obstacleToCleanServer, startCleanServer } from "../lab/clean-server.ts";
import { openLab } from "../lab/lab.ts";
import { cutConnections, makeLaptop, startLabGitHost } from "../lab/laptop.ts";

const lab = await openLab();
const obstacle = obstacleToCleanServer() ?? (lab.kind === "ready" ? null : lab.reason);
// In CI this test is never skipped.
const skip = process.env.CI ? false : (obstacle ?? false);
const withinMs = 120_000;
const name = "shop.test";

/** A bare server, a git host with a repository, and a laptop that has signed in to the one and pushed to the other. */
async function start(t: TestContext) {
  if (lab.kind !== "ready") throw new Error(`There is no lab: ${obstacle}`);
  const server = await startCleanServer(lab.env, true);
  t.after(() => server.end());
  const host = await startLabGitHost(t, server);
  await appendFile(server.file("/etc/hosts"), `${server.address} ${name}\n`);
  const laptop = await makeLaptop(t, { [name]: server.address });
  await laptop.meet(server);
  await laptop.learn(`[${host.address}]:${host.sshd.port}`, `${host.sshd.hostKey}.pub`);
  const args = [
    ...["up", `root@${server.address}`, "--repository", host.remote, "--api", host.api.address],
    ...["--url", `http://${name}`, "--token-file", laptop.tokenFile, "--yes"],
  ];
  return { server, host, laptop, args };
}

test("from nothing to a pushed-to project with one command, and again", {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { server, host, laptop, args } = await start(t);
  const seen = new Set<string>();
  const { onDone } = host.api;
  host.api.onDone = (call) => {
    onDone(call);
    for (const file of globSync("/proc/[0-9]*/{cmdline,environ}")) seen.add(readIfThere(file));
  };
  const places = ["/etc", "/opt", "/root", "/srv", "/tmp", "/var", "/run", "/home"].map(server.file);
  const search = ["-rlsF", "--devices=skip", hostToken, ...places, join(laptop.home, ".config")];
  // The layers of the base image have the files of these tests.
  const known = findText(search);
  const startedMs = performance.now();
  const first = await laptop.hotpush(args);
  const upMs = performance.now() - startedMs;
  assert.equal(first.code, 0, first.output);
  assert.equal(await versionAt(server), "1");
  await push(server, host, 2);
  await until("version 2", async () => (await versionAt(server)) === "2", withinMs);
  const liveMs = performance.now() - startedMs;
  t.diagnostic(`up ${seconds(upMs)} s, the first push is live after ${seconds(liveMs)} s`);

  const connected = () => [host.api.hooks.map(({ url }) => url), host.api.keys.map((key) => key.isReadOnly)];
  assert.deepEqual(connected(), [[`http://${name}/webhook`], [true]]);
  const again = await laptop.hotpush(args);
  assert.equal(again.code, 0, again.output);
  assert.deepEqual(connected(), [[`http://${name}/webhook`], [true]]);
  assert.equal(await versionAt(server), "2");
  assert.deepEqual(host.api.faults, []);

  const status = await laptop.hotpush(["status", "--json"]);
  assert.equal(status.code, 0, status.output);
  const history = await laptop.hotpush(["history", "--json"]);
  const { deployments } = JSON.parse(history.output) as { readonly deployments: readonly { id: number }[] };
  assert.equal(deployments.length, 2, history.output);
  const deployed = await laptop.hotpush(["deploy"]);
  assert.equal(deployed.code, 0, deployed.output);

  for (const text of [first.output, again.output, ...seen]) assert.ok(!text.includes(hostToken));
  assert.equal(findText(search), known);
  const { stdout } = await server.type("/", "docker ps --all --quiet | xargs -n 1 docker logs 2>&1");
  assert.ok(!stdout.includes(hostToken));
});

test("cut at every command, the same line goes on to the end", { skip, timeout: 900_000 }, async (t) => {
  const { server, host, laptop, args } = await start(t);
  const cut = new Set<string>();
  let runs = 0;
  for (; ; runs += 1) {
    let isCut = false;
    const { code, output } = await laptop.hotpush(args, (text) => {
      const line = text.split("\n").findLast((one) => /^ {4}\S/.test(one)) ?? "";
      if (isCut || line === "" || cut.has(line)) return;
      isCut = cutConnections(server) > 0;
      if (isCut) cut.add(line);
    });
    if (!isCut) {
      assert.equal(code, 0, output);
      break;
    }
    assert.ok(runs < 60, output);
  }
  t.diagnostic(`cut ${cut.size} times in ${runs} runs`);
  assert.ok(cut.size >= 12, [...cut].join("\n"));
  assert.equal(await versionAt(server), "1");
  assert.deepEqual([host.api.hooks.length, host.api.keys.length, host.api.faults], [1, 1, []]);
});

test("a server whose key is not known is not signed in to", { skip, timeout: 300_000 }, async (t) => {
  const { laptop, args } = await start(t);
  execFileSync("sed", ["-i", "1d", laptop.knownHosts]);
  const before = await readFile(laptop.knownHosts, "utf8");
  const { code, output } = await laptop.hotpush(args);
  assert.equal(code, 1, output);
  assert.equal(await readFile(laptop.knownHosts, "utf8"), before);
});

async function push(server: CleanServer, host: Awaited<ReturnType<typeof startLabGitHost>>, version: number) {
  const after = host.push(version);
  const [hook] = host.api.hooks;
  const { headers, body } = githubPush({ after, repository: "octo/shop" }, hook?.secret);
  const request = { method: "POST", headers: { ...headers, host: name }, body };
  const answer = await sendHttp(new URL("/webhook", `http://${server.address}`), request);
  assert.equal(answer.status, 202, String(answer.body));
}

async function versionAt(server: CleanServer): Promise<string | null> {
  const request = { headers: { host: name }, timeoutMs: 10_000 };
  const { body } = await sendHttp(new URL(`http://${server.address}`), request);
  return /version (\d+)/.exec(String(body))?.[1] ?? null;
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** @returns the names of the files that have it */
function findText(args: readonly string[]): string {
  try {
    return execFileSync("grep", args, { encoding: "utf8" });
  } catch (error) {
    return String((error as { readonly stdout?: string }).stdout ?? "");
  }
}

function seconds(ms: number): number {
  return Math.round(ms / 1_000);
}
