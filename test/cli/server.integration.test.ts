import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { freePort } from "../harness/free-port.ts";
import { commandEnvironment, hotpush, launcher, startAnswering } from "../harness/hotpush.ts";
import { noServer } from "../harness/no-server.ts";
import { makeToken, startPage } from "../harness/page.ts";
import { untilDeployment } from "../harness/records.ts";
import { makeRepository } from "../harness/repository.ts";
import { letGo } from "../harness/script.ts";
import { quickScript } from "../harness/service.ts";
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
  const [port, proxyPort] = [await freePort(), await freePort()];
  const page = await startPage(t, service, { proxyPort });
  const cut = await forward(t, proxyPort, page.port);
  const file = join(temporaryDirectory(t), "token");
  const token = await makeToken(service, "deploy");
  writeFileSync(file, token, { mode: 0o600 });
  const server = `http://localhost:${proxyPort}`;
  const there = (...args: readonly string[]) => hotpush(service, ...args);
  const here = (...args: readonly string[]) =>
    onLaptop(t, ["--server", server, "--token-file", file, ...args]);
  return { service, page, file, server, there, here, cut, unusedPort: port };
}

function onLaptop(t: TestContext, args: readonly string[]): Promise<Printed> {
  const { PATH } = commandEnvironment({ statePath: "/nonexistent" });
  const env = { ...noServer, PATH, HOME: temporaryDirectory(t), USER: "ann" };
  return new Promise((resolve) => {
    execFile(launcher, args, { env, cwd: "/" }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });
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
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  t.after(() => {
    cut();
    server.close();
  });
  return cut;
}

/** A server that is no Hotpush. */
async function answerAnything(t: TestContext): Promise<number> {
  const server = createHttpServer((_, response) => {
    response.setHeader("content-type", "text/html").end("<h1>Welcome</h1>");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
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
  assert.equal(JSON.parse(stdout).deployments[0].requestedBy.name, "deploy (token 2)");
  assert.equal((await here("cancel", "2")).code, 1);
});

test("logs -f goes on where it was when the connection is lost", async (t) => {
  const script = `#!/bin/sh
echo "==> Count"
for number in 1 2 3; do echo "line $number"; done
while [ ! -e "$REPO_PATH/go" ]; do sleep 0.05; done
for number in 4 5 6; do echo "line $number"; done
`;
  const { service, here, cut } = await start(t, script);
  await deliver(service.url, githubPush());
  await untilDeployment(service.statePath, 1, ({ state }) => state === "running");
  const following = here("logs", "-f", "1", "--json");
  const follower = () => here("status");
  await until("the log is followed", async () => (await follower()).code === 0);
  for (let count = 0; count < 2; count += 1) {
    await until("the first lines", async () => (await here("logs", "1")).stdout.includes("line 3"));
    cut();
  }
  letGo(service.repoPath);
  const { code, stdout, stderr } = await following;
  assert.equal(code, 0, stderr);
  const lines = stdout
    .split("\n")
    .flatMap((text) => (text.includes('"line"') ? [JSON.parse(text).line] : []));
  assert.deepEqual(
    lines.filter((text) => text.startsWith("line")),
    [1, 2, 3, 4, 5, 6].map((number) => `line ${number}`),
  );
});

test("what is wrong with the address, the token or the command is said", async (t) => {
  const { service, file, server, here, unusedPort } = await start(t);
  const wrong = async (args: readonly string[], why: RegExp) => {
    const { code, stderr } = await onLaptop(t, args);
    assert.equal(code, 1);
    assert.match(stderr, why);
  };
  await wrong(["--server", server, "status"], /A token is missing\. On the server: hotpush open --token/);
  const withToken = (address: string) => ["--server", address, "--token-file", file, "status"];
  await wrong(withToken("http://example.com"), /write the address of its page/);
  await wrong(withToken("https://nothing.invalid"), /There is no host nothing\.invalid/);
  await wrong(withToken(`http://localhost:${unusedPort}`), /Nothing listens at localhost:/);
  await wrong(withToken(`http://localhost:${service.port}`), /This service has two paths: POST \/webhook/);
  await wrong(withToken(`http://localhost:${await answerAnything(t)}`), /not like the page of a Hotpush/);
  assert.match((await here("open")).stderr, /hotpush open acts only on the machine of the service/);
  writeFileSync(file, await makeToken(service, "read"));
  assert.match((await here("deploy")).stderr, /This takes an operator, .*: read may only look\./);
  writeFileSync(file, "hp_unknown");
  await wrong(withToken(server), /does not know this token/);
  chmodSync(file, 0o644);
  await wrong(withToken(server), /Other users can read the token in .*chmod 600/);
});
