import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { makePlace, type Place, probe, setSettings } from "../harness/doctor.ts";
import { freePort, listenHere } from "../harness/listen.ts";
import { startService } from "../harness/service.ts";

const nobody = `http://127.0.0.1:${await freePort()}`;
const probeUrl = (place: Place, url: string) => probe(place, "public-url", { args: ["--url", url] });

test("public-url: passes if a delivery reaches the service, and names the line for a proxy that keeps it", async (t) => {
  const place = makePlace(t);
  const service = await startService(t, { repoPath: place.repoPath });
  setSettings(place, { WEBHOOK_PORT: String(service.port) });
  for (const url of [service.url, `${service.url}/webhook`])
    assert.equal((await probeUrl(place, url)).outcome, "ok");
  setSettings(place, { WEBHOOK_URL: `${service.url}/webhook` });
  assert.equal((await probe(place, "public-url")).outcome, "ok");
  const proxy = createServer((_, response) => response.writeHead(404).end("<html>"));
  const [fault] = (await probeUrl(place, `http://127.0.0.1:${await listenHere(t, proxy)}`)).faults;
  assert.deepEqual([fault?.severity, fault?.change?.includes("/webhook")], ["problem", true]);
});

test("public-url: no answer and an unknown name are found; WEBHOOK_URL waits for the service", async (t) => {
  const place = makePlace(t);
  for (const url of [nobody, "https://shop.invalid"])
    assert.equal((await probeUrl(place, url)).faults[0]?.severity, "problem");
  setSettings(place, { WEBHOOK_URL: `${nobody}/webhook` });
  assert.equal((await probe(place, "public-url")).outcome, "skipped");
});
