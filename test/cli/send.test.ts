import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { gitHosts } from "../../src/setup/git-host.ts";
import { type CliEnding, runCli } from "../harness/cli.ts";
import { testSecret } from "../harness/delivery.ts";
import { readRecorded } from "../harness/recorded.ts";
import { makeRepository, type TestRepository } from "../harness/repository.ts";
import { startService } from "../harness/service.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";

/** A repository with two commits and a remote, and a service that has its secret. */
async function makeSetting(t: TestContext, env: Readonly<Record<string, string>> = {}) {
  const repository = makeRepository(t);
  repository.commit("The first version");
  repository.commit("Show the tide of tomorrow");
  repository.git("remote", "add", "origin", "git@github.com:octo/shop.git");
  const service = await startService(t, { env });
  const secret = env.WEBHOOK_SECRET ?? testSecret;
  const send = (...args: readonly string[]) =>
    runCli(["send", ...args], {
      cwd: repository.directory,
      env: { WEBHOOK_SECRET: secret, WEBHOOK_PORT: String(service.port) },
    });
  return { repository, service, send };
}

test("a push of the repository's head is accepted and deployed", async (t) => {
  const { repository, service, send } = await makeSetting(t);
  const { code, stdout, stderr } = await send();
  assert.equal(code, 0, stderr);
  const commit = repository.git("rev-parse", "HEAD");
  assert.match(
    stdout,
    /"Show the tide of tomorrow" to refs\/heads\/main of octo\/shop, signed as github does\./,
  );
  assert.match(stdout, /Answered with 202, in \d+ ms\./);
  assert.match(stdout, new RegExp(`deployment 1 of ${commit.slice(0, 7)} is running`));
  await service.log.waitForEnding(1);
  assert.deepEqual(service.log.outputOf(1), ["==> Deploy", `deployed refs/heads/main ${commit}`]);
  const before = readRecorded(service.statePath, ({ all }) => all("SELECT before_commit FROM deployments"));
  assert.equal(before[0]?.before_commit, repository.git("rev-parse", "HEAD^"));
});

test("a dry run says what would be deployed, and nothing is", async (t) => {
  const { repository, service, send } = await makeSetting(t);
  const { code, stdout, stderr } = await send("--dry-run");
  assert.equal(code, 0, stderr);
  const commit = repository.git("rev-parse", "--short=7", "HEAD");
  assert.match(
    stdout,
    new RegExp(`^A signed test push reached the service and would deploy ${commit}\\.$`, "m"),
  );
  assert.equal(readRecorded(service.statePath, ({ all }) => all("SELECT 1 FROM deployments")).length, 0);
});

for (const host of gitHosts) {
  test(`sent as ${host}, it is accepted`, async (t) => {
    const secret = host === "gitlab" ? "whsec_JtiGRRxPo1ai3BhIeLgBd+WnzfVsXEtvexTStoIV8IQ=" : testSecret;
    const { service, send } = await makeSetting(t, { WEBHOOK_SECRET: secret });
    const { code, stderr } = await send("--host", host);
    assert.equal(code, 0, stderr);
    const line = await service.log.waitFor(({ event }) => event === "delivery.accepted");
    assert.equal(line.host, host === "bitbucket" ? "bitbucket-cloud" : host);
    await service.log.waitForEnding(1);
  });
}

test("a ping is answered, and a host that has none says what to do instead", async (t) => {
  const { send } = await makeSetting(t);
  assert.match((await send("--event", "ping")).stdout, /A signed ping reached the service\./);
  const refused = await send("--event", "ping", "--host", "gitea");
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /gitea sends no ping.*hotpush send --host gitea --dry-run/);
});

test("a file is sent as it is, as a dry run too; what can't be marked is not sent", async (t) => {
  const { repository, service, send } = await makeSetting(t);
  const payload = { ref: "refs/heads/main", before: "0".repeat(40), after: "a".repeat(40) };
  repository.write("push.json", JSON.stringify(payload));
  assert.match((await send("--file", "push.json", "--dry-run")).stdout, /would deploy aaaaaaa\./);
  assert.equal((await send("--file", "push.json")).code, 0);
  await service.log.waitForEnding(1);
  const again = await send("--file", "push.json", "--dry-run");
  assert.equal(again.code, 1);
  assert.match(again.stderr, /knows it already\. This delivery was deployed already/);
  repository.write("push.json", "[]");
  assert.match((await send("--file", "push.json", "--dry-run")).stderr, /no JSON object/);
  assert.match((await send("--file", "none.json")).stderr, /none\.json cannot be read \(ENOENT\)/);
});

test("what would be ignored, or could not be started, ends with 1 and the reason", async (t) => {
  const { service, send } = await makeSetting(t, { REPOSITORY: "octo/other" });
  const ignored = await send("--dry-run");
  assert.equal(ignored.code, 1);
  assert.match(ignored.stderr, /would be ignored\. Only pushes of the repository that REPOSITORY names/);
  assert.equal((await send()).code, 1);
  const other = await startService(t, { script: null });
  const failing = await send("--dry-run", "--url", `${other.url}/webhook`);
  assert.equal(failing.code, 1);
  assert.match(failing.stderr, /its deployment would fail\. .*deploy\.sh does not exist\. Copy/);
  assert.equal(readRecorded(service.statePath, ({ all }) => all("SELECT 1 FROM deployments")).length, 0);
});

test("the secret comes from .env here, from .env of the repository around, or from a file", async (t) => {
  const { repository, service } = await makeSetting(t);
  const sendFrom = (cwd: string, env = {}) =>
    runCli(["send", "--dry-run"], { cwd, env: { WEBHOOK_PORT: String(service.port), ...env } });
  repository.write("deep/down/file", "");
  const deep = join(repository.directory, "deep/down");
  assert.match((await sendFrom(deep)).stderr, /There is no WEBHOOK_SECRET/);
  repository.write(".env", `WEBHOOK_SECRET=${testSecret}\n`);
  assert.equal((await sendFrom(repository.directory)).code, 0);
  assert.equal((await sendFrom(deep)).code, 0);
  const file = join(temporaryDirectory(t), "secret");
  writeFileSync(file, `${testSecret}\n`);
  repository.write(".env", "");
  assert.equal((await sendFrom(deep, { WEBHOOK_SECRET_FILE: file })).code, 0);
  assert.match((await sendFrom(deep, { WEBHOOK_SECRET: "change-me" })).stderr, /still the placeholder/);
});

test("where the secrets differ, it says so and ends with 1", async (t) => {
  const { repository, service } = await makeSetting(t);
  const env = { WEBHOOK_SECRET: "another secret of thirty-two bytes", WEBHOOK_PORT: String(service.port) };
  const { code, stderr } = await runCli(["send", "--dry-run"], { cwd: repository.directory, env });
  assert.equal(code, 1);
  assert.match(stderr, /^hotpush: The secrets differ/);
});

test("the head is that of main or master, whatever is checked out", async (t) => {
  const { repository, send } = await makeSetting(t);
  const { git, commit } = repository;
  const main = git("rev-parse", "HEAD");
  git("switch", "--quiet", "--create", "next");
  commit("Not yet");
  assert.equal(await sentCommit(send), main);
  git("checkout", "--quiet", "--detach");
  assert.equal(await sentCommit(send), main);
  git("branch", "--move", "main", "master");
  assert.equal(await sentCommit(send), main);
  git("branch", "--move", "master", "trunk");
  const { code, stderr } = await send("--dry-run");
  assert.equal(code, 1);
  assert.match(stderr, /has no branch main or master with a commit/);
});

test("a repository without a commit, and no repository, are told", async (t) => {
  const { service } = await makeSetting(t);
  const env = { WEBHOOK_SECRET: testSecret, WEBHOOK_PORT: String(service.port) };
  const empty = makeRepository(t).directory;
  assert.match(
    (await runCli(["send"], { cwd: empty, env })).stderr,
    /no branch main or master with a commit/,
  );
  const nothing = temporaryDirectory(t);
  assert.match((await runCli(["send"], { cwd: nothing, env })).stderr, /is no git repository/);
});

test("in a repository without a remote the directory gives the name, and spaces do no harm", async (t) => {
  const repository = makeRepository(t, "my shop");
  repository.commit();
  const service = await startService(t);
  const env = { WEBHOOK_SECRET: testSecret, WEBHOOK_PORT: String(service.port) };
  const { stdout, code } = await runCli(["send", "--dry-run"], { cwd: repository.directory, env });
  assert.equal(code, 0);
  assert.match(stdout, /of local\/my shop,/);
});

test("--json is one object with what was sent, what came back and what it means", async (t) => {
  const { repository, service, send } = await makeSetting(t);
  const { stdout, code } = await send("--dry-run", "--json");
  assert.equal(code, 0);
  const { durationMs, detail, answer, ...rest } = JSON.parse(stdout);
  assert.deepEqual(rest, {
    ok: true,
    outcome: "would-deploy",
    url: `${service.url}/webhook`,
    host: "github",
    event: "push",
    dryRun: true,
    ref: "refs/heads/main",
    commit: repository.git("rev-parse", "HEAD"),
    repository: "octo/shop",
    status: 200,
  });
  assert.ok(durationMs >= 0);
  assert.equal(answer.status, "dry-run");
  assert.match(detail, /would deploy/);
});

test("where nothing listens, it is refused at once, or waited for as long as it is told", async (t) => {
  const repository = makeRepository(t);
  repository.commit();
  const server = createTcpServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  const env = { WEBHOOK_SECRET: testSecret, WEBHOOK_PORT: String(port) };
  const run = (...args: readonly string[]) => runCli(["send", ...args], { cwd: repository.directory, env });
  const { code, stderr } = await run();
  assert.equal(code, 1);
  assert.match(stderr, /Nothing listens at 127\.0\.0\.1:\d+ \(connection refused\)\. Start the service/);
  const waiting = run("--dry-run", "--wait", "60s");
  await startService(t, { env: { WEBHOOK_PORT: String(port) } });
  assert.equal((await waiting).code, 0);
});

for (const [what, listener, expected] of [
  [
    "a redirect",
    (_, response) => response.writeHead(308, { location: "https://shop.example.org/webhook" }).end(),
    /redirects to https:\/\/shop\.example\.org\/webhook \(308\).*as its payload URL and here as --url/,
  ],
  [
    "a page of the proxy",
    (_, response) => response.writeHead(404, { "content-type": "text/html", server: "nginx" }).end("<html>"),
    /answered with 404 by nginx, not by Hotpush\. Let the proxy pass \/webhook on/,
  ],
  [
    "a page that says 200",
    (_, response) => response.writeHead(200, { server: "Caddy" }).end("Hello"),
    /answered with 200 by Caddy, not by Hotpush/,
  ],
  [
    "a proxy without its service",
    (_, response) => response.writeHead(502, { server: "Caddy" }).end(),
    /The proxy is there, the service behind it is not\. Start it: docker compose up -d/,
  ],
  [
    "a proxy that asks for a password",
    (_, response) => response.writeHead(401, { "www-authenticate": "Basic" }).end(),
    /The proxy asks for a password/,
  ],
  ["a closed connection", (request) => request.socket.destroy(), /closed the connection without an answer/],
] as const satisfies readonly (readonly [string, RequestListener, RegExp])[]) {
  test(`${what} is told from an answer of Hotpush, with what to do`, async (t) => {
    const ending = await sendTo(t, await listen(t, createServer(listener)));
    assert.equal(ending.code, 1);
    assert.match(ending.stderr, expected);
  });
}

test("a certificate that nobody knows, and a server without https, are told", async (t) => {
  const { key, cert } = makeCertificate(t) ?? {};
  if (key === undefined || cert === undefined) return t.skip("it needs openssl");
  const origin = await listen(
    t,
    createSecureServer({ key, cert }, (_, response) => response.end()),
  );
  assert.match(
    (await sendTo(t, origin.replace("http:", "https:"))).stderr,
    /is not signed by an authority that this/,
  );
  const plain = await listen(t, createServer());
  assert.match((await sendTo(t, plain.replace("http:", "https:"))).stderr, /does not speak https here/);
});

for (const [args, expected] of [
  [["--url", "shop.example.org"], /must begin with http:\/\/ or https:\/\//],
  [["--url", "https://shop.invalid/"], /The name shop\.invalid is not known|could not be reached/],
] as const) {
  test(`${args.join(" ")} is told`, async (t) => {
    const { send } = await makeSetting(t);
    const { code, stderr } = await send(...args);
    assert.equal(code, 1);
    assert.match(stderr, expected);
  });
}

test("a wrong option is a wrong command line, and a secret is never taken from it", async (t) => {
  const { send } = await makeSetting(t);
  assert.equal((await send("--host", "sourceforge")).code, 2);
  assert.equal((await send("--wait", "soon")).code, 2);
  assert.equal((await send("--secret", "x")).code, 2);
});

async function sentCommit(send: (...args: readonly string[]) => Promise<CliEnding>): Promise<string> {
  const { stdout } = await send("--dry-run", "--json");
  return (JSON.parse(stdout) as { commit: string }).commit;
}

async function listen(scope: Scope, server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  scope.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function sendTo(t: TestContext, origin: string): Promise<CliEnding> {
  const repository: TestRepository = makeRepository(t);
  repository.commit();
  return runCli(["send", "--url", origin], {
    cwd: repository.directory,
    env: { WEBHOOK_SECRET: testSecret },
  });
}

function makeCertificate(t: TestContext): { readonly key: Buffer; readonly cert: Buffer } | null {
  const directory = temporaryDirectory(t);
  const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  const name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
  const args = [
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-days",
    "1",
    ...name,
    "-keyout",
    key,
    "-out",
    cert,
  ];
  const { status } = spawnSync("openssl", args);
  return status === 0 ? { key: readFileSync(key), cert: readFileSync(cert) } : null;
}
