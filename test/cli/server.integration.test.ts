import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { deliver, githubPush } from "../harness/delivery.ts";
import { commandEnvironment, hotpush, launcher, noServer, startAnswering } from "../harness/hotpush.ts";
import { freePort, listenHere } from "../harness/listen.ts";
import { makeToken, startPage } from "../harness/page.ts";
import { untilDeployment } from "../harness/records.ts";
import { makeRepository } from "../harness/repository.ts";
import { letGo, quickScript } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

interface Printed {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A machine with a page, and a laptop that has nothing but its address and a token. */
async function start(t: TestContext, script = quickScript) {
  const { directory: repoPath, git, write, commit } = makeRepository(t);
  write("deploy.sh", script);
  chmodSync(join(repoPath, "deploy.sh"), 0o755);
  commit();
  git("remote", "add", "origin", repoPath);
  const service = await startAnswering(t, { repoPath });
  const port = await freePort();
  const proxyPort = await freePort();
  const page = await startPage(t, service, { proxyPort });
  const cut = await forward(t, proxyPort, page.port);
  const file = join(temporaryDirectory(t), "token");
  const token = await makeToken(service, "operator");
  writeFileSync(file, token, { mode: 0o600 });
  const server = `http://localhost:${proxyPort}`;
  const there = (...args: readonly string[]) => hotpush(service, ...args);
  const here = (...args: readonly string[]) =>
    onLaptop(t, ["--server", server, "--token-file", file, ...args]);
  return { service, page, file, server, there, here, cut, unusedPort: port };
}

function onLaptop(t: TestContext, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Printed> {
  return new Promise((resolve) => {
    execFile(launcher, args, { env: { ...laptopEnv(t), ...env }, cwd: "/" }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });
}

function laptopEnv(t: TestContext): NodeJS.ProcessEnv {
  const { PATH } = commandEnvironment({ statePath: "/nonexistent" });
  return { ...noServer, PATH, HOME: temporaryDirectory(t), USER: "ann" };
}

/** @returns a function that cuts all connections */
async function forward(t: TestContext, port: number, to: number): Promise<() => void> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    const other = connect(to, "127.0.0.1");
    for (const one of [socket, other])
      open.add(one.on("error", () => {}).on("close", () => open.delete(one)));
    socket.pipe(other).pipe(socket);
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  t.after(() => {
    cut();
    server.close();
  });
  return cut;
}

test("on a laptop, commands print what they print on the server", async (t) => {
  const { service, here, there } = await start(t);
  await deliver(service.url, githubPush());
  await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
  for (const args of [
    ["history"],
    ["history", "--json"],
    ["projects", "--json"],
    ["logs", "1"],
    ["logs"],
    ["status", "--json"],
  ])
    assert.deepEqual(await here(...args), await there(...args), args.join(" "));
  const deployed = await here("deploy");
  assert.equal(deployed.code, 0, deployed.stderr);
  assert.match(deployed.stdout, /^Deployment 2 deploys main at /);
  const { stdout } = await there("history", "--json");
  assert.equal(JSON.parse(stdout).deployments[0].requestedBy.name, "operator's token (token 2)");
  assert.equal((await here("cancel", "2")).code, 1);
});

test("if the connection is lost, logs -f says how to go on", async (t) => {
  const script = `#!/bin/sh
echo "line 1"
while [ -d "$REPO_PATH" ] && [ ! -e "$REPO_PATH/go" ]; do sleep 0.05; done
echo "line 2"
`;
  const { service, server, file, here, cut } = await start(t, script);
  await deliver(service.url, githubPush());
  await untilDeployment(service.statePath, 1, ({ state }) => state === "running");
  await until("the first line is there", async () => (await here("logs", "1")).stdout.includes("line 1"));
  const child = spawn(launcher, ["--server", server, "--token-file", file, "logs", "-f", "1"], {
    env: laptopEnv(t),
    cwd: "/",
    stdio: ["ignore", "pipe", "pipe"],
  });
  const errors = text(child.stderr);
  await once(child.stdout, "data");
  cut();
  const [code] = await once(child, "close");
  assert.equal(code, 1);
  assert.match(await errors, /hotpush logs -f 1/);
  letGo(service.repoPath);
});

test("what is wrong with the address, the token or the command is said", async (t) => {
  const { service, file, server, here, unusedPort } = await start(t);
  const wrong = async (args: readonly string[], why: RegExp) => {
    const { code, stderr } = await onLaptop(t, args);
    assert.equal(code, 1);
    assert.match(stderr, why);
  };
  await wrong(["--server", server, "status"], /A token is missing\. On the server: hotpush open --token/);
  const other = createHttpServer((_, response) => {
    response.setHeader("content-type", "text/html").end("<h1>Welcome</h1>");
  });
  const withToken = (address: string) => ["--server", address, "--token-file", file, "status"];
  await wrong(withToken("http://example.com"), /write the address of its page/);
  await wrong(withToken("https://nothing.invalid"), /nothing\.invalid cannot be reached/);
  await wrong(withToken(`http://localhost:${unusedPort}`), / cannot be reached: /);
  await wrong(withToken(`http://localhost:${service.port}`), /This service has two paths: POST \/webhook/);
  await wrong(withToken(`http://localhost:${await listenHere(t, other)}`), /not like the page of a Hotpush/);
  assert.match((await here("open")).stderr, /hotpush open acts only on the machine of the service/);
  writeFileSync(file, await makeToken(service, "viewer"));
  assert.match((await here("deploy")).stderr, /This takes an operator, .*: viewer's token may only look\./);
  writeFileSync(file, "hp_unknown");
  await wrong(withToken(server), /does not know this token/);
  chmodSync(file, 0o644);
  await wrong(withToken(server), /which other users can read\. Run: chmod 600/);
});

const macos = {
  NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, "../harness/on-macos.ts"))}`,
};

test("on macOS, commands call the service of a server", async (t) => {
  const { server, file } = await start(t);
  const { code, stdout, stderr } = await onLaptop(
    t,
    ["--server", server, "--token-file", file, "status"],
    macos,
  );
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" }, stdout);
});

test("on macOS, the service and what sets a server up refuse with a sentence", async (t) => {
  for (const [args, wanted] of [
    [[], 78],
    [["front"], 78],
    [["run"], 78],
    [["init", "--yes"], 1],
    [["rollout"], 1],
  ] as const) {
    const { code, stderr } = await onLaptop(t, args, macos);
    assert.equal(code, wanted, stderr);
    assert.match(stderr, /^hotpush: This is darwin[^\n]*/);
  }
});
