import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type RequestListener, request } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { webhookUrl } from "../../src/doctor/web/public-url.ts";
import { git, look, makePlace, type Place, setSettings, unusedPort } from "../harness/doctor.ts";
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

const lookAt = (place: Place, url: string) => look(place, "public-url", { args: ["--url", url] });

test("public-url: a proxy that passes deliveries on is all right, and nothing is recorded of the ping", async (t) => {
  const place = makePlace(t);
  const url = await startBehindProxy(t, place, () => null);
  assert.deepEqual((await lookAt(place, url)).fact, `${url}/webhook has accepted a signed ping`);
  assert.equal((await lookAt(place, `${url}/webhook`)).outcome, "ok");
  setSettings(place, { WEBHOOK_URL: `${url}/webhook` });
  assert.equal((await look(place, "public-url")).fact, `${url}/webhook has accepted a signed ping`);
});

test("public-url: where the service does not run, the address of the settings says nothing of it", async (t) => {
  const place = makePlace(t);
  setSettings(place, { WEBHOOK_URL: `http://127.0.0.1:${unusedPort + 3}/webhook` });
  assert.equal((await look(place, "public-url")).fact, "the service does not run");
});

const proxies: readonly (readonly [string, ProxyRule, RegExp, RegExp])[] = [
  [
    "that does not know the path",
    () => ({ status: 404 }),
    /was answered with status 404, but not by Hotpush/,
    /^Caddyfile: reverse_proxy \/webhook 127\.0\.0\.1:\d+$/,
  ],
  ["whose service is away", () => ({ status: 502 }), /status 502, but not by Hotpush/, /reverse_proxy/],
  [
    "that sends on",
    () => ({ status: 301, headers: { location: "https://shop.example.com/webhook" } }),
    /sends on to https:\/\/shop\.example\.com\/webhook, and git hosts do not follow/,
    /^Payload URL: https:\/\/shop\.example\.com\/webhook$/,
  ],
  [
    "that takes no more than 1 MiB",
    (_, length) => (length > 1024 ** 2 ? { status: 413 } : null),
    /answers 413 to a body of 2 MiB, so a large push is lost/,
    /^client_max_body_size 25m;$/,
  ],
];

for (const [what, rule, says, change] of proxies) {
  // The line goes into the proxy's own file: a proxy that does what it says takes the place of that.
  test(`public-url: a proxy ${what} is told, and right when it passes on`, async (t) => {
    const place = makePlace(t);
    let isMended = false;
    const url = await startBehindProxy(t, place, (path, length) => (isMended ? null : rule(path, length)));
    const [fault] = (await lookAt(place, url)).faults;
    assert.match(fault?.text ?? "", says);
    assert.match(fault?.change ?? "", change);
    isMended = true;
    assert.equal((await lookAt(place, url)).outcome, "ok");
  });
}

test("public-url: another Hotpush is told from this one by its secret", async (t) => {
  const place = makePlace(t);
  const other = await startService(t, { env: { WEBHOOK_SECRET: "the secret of another service" } });
  const [fault] = (await lookAt(place, other.url)).faults;
  assert.match(fault?.text ?? "", /has another secret than the one that is set here/);
});

test("public-url: nobody there, and a name that is not known, are told", async (t) => {
  const place = makePlace(t);
  const [nobody] = (await lookAt(place, `http://127.0.0.1:${unusedPort + 3}`)).faults;
  assert.match(nobody?.text ?? "", /^Nothing answers at http:\/\/127\.0\.0\.1:\d+\/webhook/);
  const [unknown] = (await lookAt(place, "https://shop.invalid")).faults;
  assert.match(unknown?.text ?? "", /^The name shop\.invalid is not known/);
});

test("public-url: a certificate that nobody has signed is told", needs("openssl"), async (t) => {
  const place = makePlace(t);
  const [key, cert] = [join(place.home, "key"), join(place.home, "cert")];
  const subject = ["-subj", "/CN=localhost", "-days", "2", "-keyout", key, "-out", cert];
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", ...subject], { stdio: "ignore" });
  const options = { key: readFileSync(key), cert: readFileSync(cert) };
  const port = await listenHere(
    t,
    createTlsServer(options, (_, answer) => answer.end()),
  );
  const [fault] = (await lookAt(place, `https://localhost:${port}`)).faults;
  assert.match(fault?.text ?? "", /^The certificate at https:\/\/localhost:\d+\/webhook is not valid/);
});

test("public-url: the site stands for its webhook, another path for itself, and other schemes for nothing", () => {
  assert.equal(webhookUrl("https://shop.example.com"), "https://shop.example.com/webhook");
  assert.equal(webhookUrl("https://example.com/hooks/webhook"), "https://example.com/hooks/webhook");
  for (const text of ["shop.example.com", "ftp://example.com", ""])
    assert.equal(webhookUrl(text), null, text);
});

const years = ["faketime", "2019-01-01 00:00:00"];

test(
  "clock: years behind the git host's is told, with what sets it, and right without the fault",
  needs("faketime"),
  async (t) => {
    const place = makePlace(t);
    const host = createServer((_, answer) => answer.end());
    git(place, "remote", "set-url", "origin", `http://127.0.0.1:${await listenHere(t, host)}/octo/app.git`);
    const [fault] = (await look(place, "clock", { wrapper: years })).faults;
    assert.match(fault?.text ?? "", /^The clock is \d+ h( \d+ min)? behind that of 127\.0\.0\.1\.$/);
    // The command sets the clock of the machine, which a test must not: only its form is looked at.
    assert.match(
      fault?.command ?? "",
      /^(?:timedatectl set-ntp true|date --set "\$\(curl -skI http:\/\/127\.0\.0\.1:\d+\/ \| sed .+\)")$/,
    );
    assert.equal((await look(place, "clock")).fact, "as that of 127.0.0.1");
  },
);

test("clock: before the last commit is told where no host can be asked", needs("faketime"), async (t) => {
  const place = makePlace(t);
  const [fault] = (await look(place, "clock", { wrapper: years })).faults;
  assert.match(fault?.text ?? "", /^The clock shows 2019-01-01T00:0\d, which is before the last commit/);
  assert.equal((await look(place, "clock")).outcome, "ok");
});
