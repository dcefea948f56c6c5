import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type RequestListener, request } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { makePlace, type Place, probe, setSettings, unusedPort } from "../harness/doctor.ts";
import { listenHere } from "../harness/listen.ts";
import { needs } from "../harness/requirements.ts";
import { startService } from "../harness/service.ts";

/** What a proxy in front of the service does with a request; null: it passes it on. */
type ProxyRule = (url: string, length: number) => { status: number; headers?: Record<string, string> } | null;

/** A proxy of its own in front of the service at `port`. */
function proxyTo(port: number, rule: ProxyRule): RequestListener {
  return (received, answer) => {
    const ruled = rule(received.url ?? "", Number(received.headers["content-length"] ?? 0));
    if (ruled) {
      received.resume();
      answer.writeHead(ruled.status, { connection: "close", ...ruled.headers }).end("<html>");
      return;
    }
    const { method = "GET", url = "/", headers } = received;
    const passed = request({ host: "127.0.0.1", port, method, path: url, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(answer);
    });
    passed.on("error", () => answer.writeHead(502).end());
    received.pipe(passed);
  };
}

async function startBehindProxy(t: TestContext, place: Place, rule: ProxyRule): Promise<string> {
  const service = await startService(t, { repoPath: place.repoPath });
  setSettings(place, { WEBHOOK_PORT: String(service.port) });
  return `http://127.0.0.1:${await listenHere(t, createServer(proxyTo(service.port, rule)))}`;
}

const probeUrl = (place: Place, url: string) => probe(place, "public-url", { args: ["--url", url] });

test("public-url: passes if the proxy passes deliveries on", async (t) => {
  const place = makePlace(t);
  const url = await startBehindProxy(t, place, () => null);
  assert.deepEqual((await probeUrl(place, url)).fact, `${url}/webhook has accepted a signed ping`);
  assert.equal((await probeUrl(place, `${url}/webhook`)).outcome, "ok");
  setSettings(place, { WEBHOOK_URL: `${url}/webhook` });
  assert.equal((await probe(place, "public-url")).fact, `${url}/webhook has accepted a signed ping`);
});

test("public-url: WEBHOOK_URL is not tried if the service does not run", async (t) => {
  const place = makePlace(t);
  setSettings(place, { WEBHOOK_URL: `http://127.0.0.1:${unusedPort + 3}/webhook` });
  assert.equal((await probe(place, "public-url")).fact, "the service does not run");
});

const proxies: readonly (readonly [string, ProxyRule, RegExp | null])[] = [
  [
    "that does not know the path",
    () => ({ status: 404 }),
    /^Caddyfile: reverse_proxy \/webhook\* 127\.0\.0\.1:\d+$/,
  ],
  ["without its service", () => ({ status: 502 }), /reverse_proxy/],
  [
    "that redirects",
    () => ({ status: 301, headers: { location: "https://shop.example.com/webhook" } }),
    null,
  ],
  [
    "that takes no more than 1 MiB",
    (_, length) => (length > 1024 ** 2 ? { status: 413 } : null),
    /^client_max_body_size 25m;$/,
  ],
];

for (const [what, rule, change] of proxies) {
  // The line goes into the proxy's own file: a proxy that does what it says takes the place of that.
  test(`public-url: a proxy ${what} is found, and fixed when it passes on`, async (t) => {
    const place = makePlace(t);
    let isFixed = false;
    const url = await startBehindProxy(t, place, (path, length) => (isFixed ? null : rule(path, length)));
    const [fault] = (await probeUrl(place, url)).faults;
    assert.equal(fault?.severity, "problem");
    if (change === null) assert.equal(fault?.change, null);
    else assert.match(fault?.change ?? "", change);
    isFixed = true;
    assert.equal((await probeUrl(place, url)).outcome, "ok");
  });
}

test("public-url: another Hotpush is recognized by its secret", async (t) => {
  const place = makePlace(t);
  const other = await startService(t, { env: { WEBHOOK_SECRET: "the secret of another service" } });
  const [fault] = (await probeUrl(place, other.url)).faults;
  assert.deepEqual([fault?.severity, fault?.change], ["problem", null]);
});

test("public-url: no answer and an unknown name are found", async (t) => {
  const place = makePlace(t);
  for (const url of [`http://127.0.0.1:${unusedPort + 3}`, "https://shop.invalid"])
    assert.equal((await probeUrl(place, url)).faults[0]?.severity, "problem");
});

test("public-url: a certificate that nobody has signed is found", needs("openssl"), async (t) => {
  const place = makePlace(t);
  const [key, cert] = [join(place.home, "key"), join(place.home, "cert")];
  const subject = ["-subj", "/CN=localhost", "-days", "2", "-keyout", key, "-out", cert];
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", ...subject], { stdio: "ignore" });
  const options = { key: readFileSync(key), cert: readFileSync(cert) };
  const port = await listenHere(
    t,
    createTlsServer(options, (_, answer) => answer.end()),
  );
  const [fault] = (await probeUrl(place, `https://localhost:${port}`)).faults;
  assert.match(fault?.text ?? "", /self-signed certificate/);
});
