import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type CliEnding, runCli } from "../harness/cli.ts";
import { testSecret } from "../harness/delivery.ts";
import { makeRepository, type TestRepository } from "../harness/repository.ts";
import { startService } from "../harness/service.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";
import { makeSetting } from "./send-setting.ts";

test("if the secrets differ, send says so and ends with 1", async (t) => {
  const { repository, service } = await makeSetting(t);
  const env = { WEBHOOK_SECRET: "another secret of thirty-two bytes", WEBHOOK_PORT: String(service.port) };
  const { code, stderr } = await runCli(["send", "--dry-run"], { cwd: repository.directory, env });
  assert.equal(code, 1);
  assert.match(stderr, /^hotpush: The secrets differ/);
});

test("if nothing listens, send fails at once, or after the time of --wait", async (t) => {
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
    /The proxy answers, but the service behind it does not\. Start it: docker compose up -d/,
  ],
  [
    "a proxy that asks for a password",
    (_, response) => response.writeHead(401, { "www-authenticate": "Basic" }).end(),
    /The proxy asks for a password/,
  ],
  ["a closed connection", (request) => request.socket.destroy(), /closed the connection without an answer/],
] as const satisfies readonly (readonly [string, RequestListener, RegExp])[]) {
  test(`send distinguishes ${what} from Hotpush, and says what to do`, async (t) => {
    const ending = await sendTo(t, await listen(t, createServer(listener)));
    assert.equal(ending.code, 1);
    assert.match(ending.stderr, expected);
  });
}

test("send explains an unknown certificate, and a server without https", async (t) => {
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
  test(`send explains what is wrong with ${args.join(" ")}`, async (t) => {
    const { send } = await makeSetting(t);
    const { code, stderr } = await send(...args);
    assert.equal(code, 1);
    assert.match(stderr, expected);
  });
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
