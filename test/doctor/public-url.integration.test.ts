import assert from "node:assert/strict";
import { createServer, type RequestListener, request } from "node:http";
import { type TestContext, test } from "node:test";
import { makePlace, type Place, probe, setSettings } from "../harness/doctor.ts";
import { freePort, listenHere } from "../harness/listen.ts";
import { startService } from "../harness/service.ts";

const nobodysPort = await freePort();

/** What a proxy in front of the service does with a request; null: it passes it on. */
type ProxyRule = () => { status: number } | null;

/** A proxy of its own in front of the service at `port`. */
function proxyTo(port: number, rule: ProxyRule): RequestListener {
  return (received, answer) => {
    const ruled = rule();
    if (ruled) {
      received.resume();
      const location = "https://shop.test/webhook";
      answer.writeHead(ruled.status, { connection: "close", location }).end("<html>");
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
  for (const given of [url, `${url}/webhook`]) assert.equal((await probeUrl(place, given)).outcome, "ok");
  setSettings(place, { WEBHOOK_URL: `${url}/webhook` });
  assert.equal((await probe(place, "public-url")).outcome, "ok");
});

test("public-url: WEBHOOK_URL is not tried if the service does not run", async (t) => {
  const place = makePlace(t);
  setSettings(place, { WEBHOOK_URL: `http://127.0.0.1:${nobodysPort}/webhook` });
  assert.equal((await probe(place, "public-url")).outcome, "skipped");
});

// The line goes into the proxy's own file: a proxy that does what it says takes the place of that.
for (const [status, hasLine] of [
  [404, true],
  [301, false],
] as const)
  test(`public-url: a proxy that answers ${status} is found, and passes when it passes on`, async (t) => {
    const place = makePlace(t);
    let isFixed = false;
    const url = await startBehindProxy(t, place, () => (isFixed ? null : { status }));
    const [fault] = (await probeUrl(place, url)).faults;
    assert.deepEqual([fault?.severity, fault?.change?.includes("/webhook") ?? false], ["problem", hasLine]);
    isFixed = true;
    assert.equal((await probeUrl(place, url)).outcome, "ok");
  });

test("public-url: no answer and an unknown name are found", async (t) => {
  const place = makePlace(t);
  for (const url of [`http://127.0.0.1:${nobodysPort}`, "https://shop.invalid"])
    assert.equal((await probeUrl(place, url)).faults[0]?.severity, "problem");
});
